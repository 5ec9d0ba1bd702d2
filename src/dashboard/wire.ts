import type { z } from "zod";
import type { health } from "../http/contracts/health-contract.js";
import type {
  usageAlertsResult,
  usageConversationResult,
  usageConversationsResult,
  usageEvents,
  usageMissesResult,
  usageNote,
  usageRequestResult,
  usageRequestsResult,
  usageRow,
  usageSummaryResult,
  usageSums,
  usageUsersResult,
} from "../http/contracts/usage-contract.js";
import type { indexResult } from "../http/contracts/user-contract.js";

/*
 * What the HTTP API answers, by its own contracts.
 */

export type WireHealth = z.output<typeof health>;
export type WireSums = z.output<typeof usageSums>;
export type WireSummary = z.output<typeof usageSummaryResult>;
export type WireNote = z.output<typeof usageNote>;
export type WireRow = z.output<typeof usageRow>;
export type WireRows = z.output<typeof usageRequestsResult>;
/** New prompts, as an event has them. */
export type WireLiveRows = NonNullable<z.output<typeof usageEvents>["requests"]>;
export type WireMisses = z.output<typeof usageMissesResult>;
export type WireUsers = z.output<typeof usageUsersResult>;
export type WireConversations = z.output<typeof usageConversationsResult>;
export type WireConversation = z.output<typeof usageConversationResult>;
export type WireAlerts = z.output<typeof usageAlertsResult>;
export type WireRequest = z.output<typeof usageRequestResult>;
export type WireBar = WireRequest["bars"][number];
export type WireIndex = z.output<typeof indexResult>;
