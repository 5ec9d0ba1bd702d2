import {
  type AgentId,
  type ConversationId,
  composedUsage,
  ENGINE_MODELS,
  type RequestId,
  type ReuseFacts,
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
  /** Tokens that the prompt before had. */
  readonly reusable?: number;
  readonly facts?: Partial<ReuseFacts>;
}

const NO_FACTS: ReuseFacts = {
  before: null,
  hasOtherInstructions: false,
  beganEpoch: false,
  isRewritten: false,
  isDropped: false,
  movedTokens: 0,
  hasNewInFront: false,
};

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
    reusable,
    facts,
  } = said;
  const before = reusable === undefined ? null : { reusableTokens: reusable, ageMs: 60_000, isEvicted: false };
  const tokens = { promptTokens: prompt, expectedTokens: expected, carriedTokens: 0 };
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
    usage: composedUsage(
      tokens,
      { ...NO_FACTS, before, ...facts },
      { minimumPrefixTokens: 0, ttlMs: null, bound: null },
    ),
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
