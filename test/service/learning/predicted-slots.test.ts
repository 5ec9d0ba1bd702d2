import { describe, expect, it } from "vitest";
import { countO200k, encodeO200k } from "../../../src/cli/o200k.js";
import { type ChatMessage, residencyModel } from "../../../src/core/index.js";
import { chatTokenizer } from "../../../src/eval/base/chat-tokens.js";
import { SlotCache } from "../../core/cache/slot-cache.js";
import { ana, composeWith, openService } from "../compose/service-fixture.js";

const SLOTS = 3;
const QUESTIONS = 24;
const BLOCK_TOKENS = 16;
const NAMES = ["Ada", "Bo", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo", "Kim", "Leo"];
/** So long that instructions alone are less than a tenth of a slot. */
const WHY =
  "for reasons that nobody could explain to the people who had come all the way from the other side of the bay to see it once more before winter.";
const MEMORIES = NAMES.map((name, n) => ({
  id: name,
  memory: `${name} told Ana on day ${n} that the ${n % 2 ? "garden" : "harbour"} is closed until the ${n + 3}th, ${WHY}`,
}));
/**
 * Which memories question `n` finds: neighbours in a circle, so that questions share some, but never all, as what stands behind the
 * blocks is not predicted; every fourth question is one of another kind.
 */
const retrieved = (n: number) =>
  [0, 1, 2, 3, 4, 5]
    .slice(0, 4 + (n % 3))
    .flatMap((at) => MEMORIES[(n % 4 === 3 ? 7 * n + 5 * at : Math.floor(n / 3) + at) % MEMORIES.length] ?? []);

/** memprefix before slots that can be emptied; each question is answered with how far the prediction was off. */
function underPrediction(conversationId: string | null) {
  let engine = new SlotCache(SLOTS);
  const tokenize = chatTokenizer(encodeO200k);
  const residency = residencyModel({ kind: "slots", slots: SLOTS });
  const service = openService({ residency, countTokens: countO200k, now: Date.now });
  const history: ChatMessage[] = [];
  let asked = 0;
  return {
    async ask() {
      const question = { role: "user", content: `${asked} days from now, what is open?` };
      const memories = retrieved(asked++);
      const system = "Answer from what you remember.";
      const messages = conversationId === null ? [question] : [...history, question];
      const composed = await composeWith(service, { userId: ana, conversationId, system, messages, memories });
      const tokens = tokenize(composed.messages);
      const [cachedTokens, promptTokens] = [engine.serve(tokens), tokens.length];
      await service.feedback(ana, null, composed.requestId, { cachedTokens, promptTokens });
      history.push(question, { role: "assistant", content: "Nobody knows." });
      const { expectedCachedTokens, totalTokens } = composed.plan;
      return { off: Math.abs(expectedCachedTokens - cachedTokens), cachedTokens, promptTokens, totalTokens };
    },
    restart: () => {
      engine = new SlotCache(SLOTS);
    },
    close: () => service.close(),
  };
}

describe.each([
  ["single prompts", null],
  ["a conversation", "trip"],
])("what is predicted of an engine's slots, for %s,", (_, conversationId) => {
  it("is what is cached, to a block, of every prompt", async () => {
    const asking = underPrediction(conversationId);
    let cached = 0;
    for (let n = 0; n < QUESTIONS; n++) {
      const { off, cachedTokens, promptTokens, totalTokens } = await asking.ask();
      expect(off, `question ${n}`).toBeLessThanOrEqual(BLOCK_TOKENS);
      expect(Math.abs(promptTokens - totalTokens), `question ${n}`).toBeLessThanOrEqual(BLOCK_TOKENS);
      cached += cachedTokens;
    }
    expect(cached).toBeGreaterThan(QUESTIONS * 50);
    await asking.close();
  });

  it("is right again within three requests of a restart", async () => {
    const asking = underPrediction(conversationId);
    for (let n = 0; n < 10; n++) await asking.ask();
    asking.restart();
    expect((await asking.ask()).off).toBeGreaterThan(BLOCK_TOKENS);
    for (let n = 0; n < 2; n++) await asking.ask();
    for (let n = 3; n < 13; n++) expect((await asking.ask()).off, `request ${n}`).toBeLessThanOrEqual(BLOCK_TOKENS);
    await asking.close();
  });
});
