import {
  type AgentId,
  type ConversationId,
  ENGINE_MODELS,
  type MissCause,
  type RequestId,
  type UserId,
} from "../../../src/core/index.js";
import type { NewUsage, UsageReport } from "../../../src/store/api/usage-log.js";

/** What a test says of a prompt; the rest stands for itself. */
export interface SaidUsage {
  readonly tenant?: string;
  readonly user?: string;
  readonly agent?: string | null;
  readonly conversation?: string | null;
  readonly request: string;
  readonly at: number;
  readonly model?: string;
  readonly engine?: string;
  readonly prompt?: number;
  readonly expected?: number;
  /** Tokens that it missed by its plan. */
  readonly missed?: number;
  readonly cause?: MissCause;
}

/** Prices: 1 a token, 1.25 written, 0.1 read; from 1,024 tokens. */
const COSTS = ENGINE_MODELS["hosted-writes"];

function keyOf({
  tenant = "default",
  user = "ana",
  agent = null,
  request,
}: Pick<SaidUsage, "tenant" | "user" | "agent" | "request">) {
  return { tenant, userId: user as UserId, agentId: agent as AgentId | null, requestId: request as RequestId };
}

/** A composed prompt. */
export function composed(said: SaidUsage): NewUsage {
  const {
    conversation = null,
    at,
    model = "gpt",
    engine = "openai",
    prompt = 2_000,
    expected = 0,
    missed,
    cause = "unknown",
  } = said;
  const miss = missed === undefined || missed === 0 ? null : { cause, tokens: missed };
  return {
    kind: "composed",
    ...keyOf(said),
    conversationId: conversation as ConversationId | null,
    at,
    model,
    engine,
    layout: conversation === null ? "single" : "conversation",
    policy: "prefix-exact",
    retention: "keep",
    epoch: null,
    usage: {
      promptTokens: prompt,
      expectedTokens: expected,
      carriedTokens: 0,
      planned: miss,
      miss,
      report: null,
      firstTokenMs: null,
    },
    costs: COSTS,
  };
}

/** An engine's report of it. */
export function reported(
  said: Pick<SaidUsage, "tenant" | "user" | "agent" | "request"> & {
    readonly cached: number;
    readonly prompt?: number;
    readonly ms?: number;
    readonly model?: string;
    readonly because?: UsageReport["facts"]["because"];
  },
): UsageReport {
  const { cached, prompt = null, ms = null, model = null, because = null } = said;
  const report = { cachedTokens: cached, promptTokens: prompt };
  return { kind: "reported", ...keyOf(said), model, facts: { report, firstTokenMs: ms, because }, costs: COSTS };
}
