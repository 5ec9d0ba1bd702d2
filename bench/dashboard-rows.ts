import type { AgentId, ConversationId, RequestId, UserId } from "../src/core/index.js";
import { composedUsage, ENGINE_MODELS } from "../src/core/index.js";
import type { UsageEntry } from "../src/store/api/usage-log.js";
import { seeded } from "./seeded.js";

const MODELS = ["sonnet", "opus", "gpt-5.6", "qwen"] as const;
const DAY_MS = 86_400_000;
const COSTS = ENGINE_MODELS["hosted-writes"];

/** So many prompts and their engines' reports, oldest first, spread over a month up to `now`. Conversations of ten turns; a tenth misses. */
export function* dashboardRows(prompts: number, users: number, now: number): Generator<UsageEntry, void, undefined> {
  const random = seeded(23);
  for (let n = 0; n < prompts; n++) {
    const user = Math.floor(random() ** 2 * users);
    const conversation = Math.floor(n / users / 10);
    const model = MODELS[Math.floor(random() ** 2 * MODELS.length)] ?? "sonnet";
    const promptTokens = 1_000 + Math.floor(random() * 12_000);
    const reusableTokens = Math.floor(promptTokens * 0.9);
    const isMissed = random() < 0.1;
    const expectedTokens = isMissed ? Math.floor(reusableTokens / 3) : reusableTokens;
    const key = {
      tenant: "default",
      userId: `user-${user}` as UserId,
      agentId: null as AgentId | null,
      requestId: `request-${n}` as RequestId,
    };
    const facts = {
      before: { reusableTokens, ageMs: 60_000, isEvicted: random() < 0.2 },
      hasOtherInstructions: random() < 0.2,
      beganEpoch: false,
      isRewritten: random() < 0.3,
      isDropped: false,
      movedTokens: 0,
      hasNewInFront: false,
    };
    const tokens = { promptTokens, expectedTokens, carriedTokens: 0 };
    yield {
      kind: "composed",
      ...key,
      conversationId: `c-${conversation}` as ConversationId,
      at: Math.floor(now - 30.9 * DAY_MS * (1 - n / prompts)),
      model,
      engine: model === "qwen" ? "vllm" : "anthropic",
      layout: "conversation",
      policy: "prefix-exact",
      retention: "keep",
      epoch: null,
      usage: composedUsage(tokens, facts, { minimumPrefixTokens: 0, ttlMs: null, isBounded: false }),
      costs: COSTS,
    };
    const cachedTokens = random() < 0.05 ? 0 : expectedTokens;
    const report = { cachedTokens, promptTokens };
    const firstTokenMs = 50 + random() * (promptTokens - cachedTokens) * 0.2;
    yield { kind: "reported", ...key, model: null, facts: { report, firstTokenMs, because: null }, costs: COSTS };
  }
}
