import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { countO200k, encodeO200k } from "../../../src/cli/o200k.js";
import { BLOCK_TOKENS, SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import type { ChatMessage, ConversationId, MemoryId, UserId } from "../../../src/core/index.js";
import { chatTokenizer } from "../../../src/eval/base/chat-tokens.js";
import { pickConversation, readLocomo } from "../../../src/eval/locomo/locomo-data.js";
import { composeRequest } from "../../../src/service/compose/compose-request.js";
import { openService } from "../../service/compose/service-fixture.js";

const sample = JSON.parse(readFileSync(new URL("../../../examples/sample-locomo.json", import.meta.url), "utf8"));
const { observations, questions } = pickConversation(readLocomo(sample));

/** Twelve facts in an order that depends on the turn: neighbouring turns share most, in another order. */
function retrieved(turn: number) {
  return Array.from({ length: 12 }, (_, n) => (turn * 3 + ((n * 5 + turn) % 12) * 2) % observations.length).map(
    (at) => ({
      id: `m${at}` as MemoryId,
      text: observations[at]?.text ?? "",
    }),
  );
}

describe("what a plan says", () => {
  it.each(["single", "conversation"] as const)("is what a simulated engine finds, %s prompts", async (layout) => {
    const memprefix = openService({ countTokens: countO200k });
    const tokenize = chatTokenizer(encodeO200k);
    const engine = new SimulatedCache("blocks");
    const history: ChatMessage[] = [];
    let expectedHits = 0;
    for (const [turn, { question, answer }] of questions.entries()) {
      const asked = { role: "user", content: question };
      const { messages, plan } = await memprefix.compose(
        composeRequest({
          userId: "ana" as UserId,
          conversationId: layout === "single" ? null : ("c" as ConversationId),
          messages: layout === "single" ? [asked] : [...history, asked],
          memories: retrieved(turn),
          system: "Answer from what you remember.",
        }),
      );
      const tokens = tokenize(messages);
      const hit = engine.serve(tokens);
      // Engines cache whole blocks; the plan counts to the token.
      expect(Math.abs(plan.expectedCachedTokens - hit)).toBeLessThan(2 * BLOCK_TOKENS);
      expect(Math.abs(plan.totalTokens / tokens.length - 1)).toBeLessThan(0.03);
      expect(plan.expectedCachedTokens + plan.uncachedTokens).toBe(plan.totalTokens);
      expectedHits += plan.expectedCachedTokens;
      history.push(asked, { role: "assistant", content: answer ?? "I don't know." });
    }
    expect(expectedHits).toBeGreaterThan(questions.length * BLOCK_TOKENS);
    await memprefix.close();
  });
});
