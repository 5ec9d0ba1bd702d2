import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { priceOf } from "../../../src/core/cost/prices.js";
import { usageFixture } from "../../engines/upstream/fixture.js";
import { BreakpointCache, type MarkedPrompt } from "../../service/compose/breakpoint-cache.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { type AnthropicRequest, anthropicServer, sendAnthropic } from "./anthropic-server.js";

const MODEL = "claude-opus-4-8";
const SYSTEM = "Be brief and kind, and say no more than you know. ".repeat(150);
const factsOf = (turn: number) =>
  Array.from(
    { length: 40 },
    (_, n) => `Ada's thing ${turn}-${n} is in drawer ${7 * turn + n}, next to the other things.`,
  );

/** A body of the Messages API as its provider's cache sees it: a character is a token, the start of a block one that no character is. */
function tokenized({ system, messages }: AnthropicRequest): MarkedPrompt {
  const prompt = { tokens: [] as number[], breakpoints: [] as number[], blockEnds: [] as number[] };
  const blocksOf = (content: unknown) => (typeof content === "string" ? [{ text: content }] : (content as object[]));
  for (const block of [system, ...messages.map(({ content }) => content)].flatMap(blocksOf)) {
    const { text, cache_control: mark } = block as { readonly text?: string; readonly cache_control?: object };
    prompt.tokens.push(-1, ...Array.from(text ?? "", (char) => char.codePointAt(0) ?? 0));
    prompt.blockEnds.push(prompt.tokens.length);
    if (mark != null) prompt.breakpoints.push(prompt.tokens.length);
  }
  return prompt;
}

interface Bill {
  readonly input: number;
  readonly written: number;
  readonly read: number;
}

describe("writes to Anthropic's cache, which are billed", () => {
  const anthropic = anthropicServer();
  const source = answeringSource([]);
  const app = servedApp({
    source: () => source,
    upstream: anthropic,
    environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  });
  const bills: Bill[] = [];
  /** What the same prompts cost where each is marked at its end. */
  const marked: Bill[] = [];

  beforeEach(() => {
    bills.length = 0;
    marked.length = 0;
    const [cache, other] = [new BreakpointCache("anthropic"), new BreakpointCache("anthropic")];
    const billOf = (of: BreakpointCache, prompt: MarkedPrompt): Bill => {
      const read = of.serve(prompt);
      const written = Math.max(0, (prompt.breakpoints.at(-1) ?? 0) - read);
      return { read, written, input: prompt.tokens.length - read - written };
    };
    anthropic.behave((response, { body }) => {
      const prompt = tokenized(body);
      const bill = billOf(cache, prompt);
      bills.push(bill);
      marked.push(billOf(other, { ...prompt, breakpoints: prompt.blockEnds.slice(-4) }));
      const usage = {
        input_tokens: bill.input,
        cache_creation_input_tokens: bill.written,
        cache_read_input_tokens: bill.read,
        output_tokens: 5,
      };
      sendAnthropic(response, 200, { ...(usageFixture("anthropic-message").answer as object), usage });
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  async function ask(messages: readonly object[], conversation?: string, system = SYSTEM): Promise<string> {
    const memprefix = { user_id: "ada", ...(conversation === undefined ? {} : { conversation_id: conversation }) };
    const body = { model: MODEL, max_tokens: 9, system, messages, memprefix };
    const { status } = await app.send("POST", "/v1/messages", body);
    expect(status).toBe(200);
    return JSON.stringify(anthropic.calls.at(-1)?.body);
  }
  const user = (content: string) => ({ role: "user", content });
  const priced = (of: readonly Bill[]) => {
    const { written = 1, cached = 1 } = { ...priceOf({ host: null, family: "anthropic" }, MODEL) };
    return of.reduce((sum, bill) => sum + bill.input + (written ?? 1) * bill.written + (cached ?? 1) * bill.read, 0);
  };

  it("are the instructions' alone of single prompts whose memories nobody had before", async () => {
    for (let turn = 0; turn < 6; turn++) {
      source.found = factsOf(turn);
      expect(await ask([user(`What of ${turn}?`)])).toContain(`thing ${turn}-39`);
    }
    expect(bills.map(({ written }) => written)).toEqual([SYSTEM.length + 1, 0, 0, 0, 0, 0]);
    for (const { read } of bills.slice(1)) expect(read).toBe(SYSTEM.length + 1);
    expect(priced(bills)).toBeLessThan(0.9 * priced(marked));
  });

  it("are the instructions' alone of a conversation whose turns came too late twice in a row, until one comes in time", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const history: object[] = [];
    const marks: number[] = [];
    for (const minutes of [0, 6, 6, 6, 1, 1]) {
      vi.setSystemTime(Date.now() + 60_000 * minutes);
      source.found = factsOf(marks.length);
      history.push(user(`What of ${marks.length}?`));
      marks.push((await ask(history, "slow")).match(/"cache_control"/g)?.length ?? 0);
      history.push({ role: "assistant", content: "Green tea." });
    }
    expect(marks.map((count) => count > 1)).toEqual([true, true, false, false, true, true]);
    expect(marks[2]).toBe(1);
  });
});
