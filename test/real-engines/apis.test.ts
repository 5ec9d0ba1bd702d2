import { spawn } from "node:child_process";
import { join } from "node:path";
import OpenAI from "openai";
import { expect, it } from "vitest";
import { z } from "zod";
import { ENGINES_FOLDER, program } from "./install.js";
import { memoriesOf, withEngine } from "./real-engine.suite.js";

/** vLLM's on a CPU. */
const BLOCK = 128;
const TURNS = 20;
const MODEL = "smol";

/** One turn of a way to talk: chat completions, Messages, Responses with the history, or continued by an id. */
const turn = z.object({
  way: z.enum(["chat", "history", "continued", "messages"]),
  turn: z.int(),
  prompt: z.int(),
  cached: z.int(),
  /** Null: not said. */
  expected: z.int().nullable(),
});
type Turn = z.output<typeof turn>;

/** Prompts extend each other, and what should be cached was. */
function expectHeld(turns: readonly Turn[], way: Turn["way"]): void {
  const own = turns.filter((one) => one.way === way);
  expect(own).toHaveLength(TURNS);
  const shown = JSON.stringify(own);
  for (const [at, { cached, expected }] of own.entries()) {
    const before = own[at - 1];
    if (before !== undefined) expect(cached, shown).toBeGreaterThan(before.prompt - BLOCK);
    if (way === "continued") expect(expected, shown).toBe(at === 0 ? 0 : null);
    // By events of the engine's cache to the block; else by the usage of the prompt before.
    else if (way === "chat") expect(expected, shown).toBe(cached);
    else expect(Math.abs((expected ?? Number.NaN) - cached), shown).toBeLessThanOrEqual(BLOCK);
  }
}

withEngine(
  "vLLM, through each of its APIs",
  { engine: "vllm", model: MODEL, events: "free" },
  { MEMPREFIX_ENGINE_FAMILY: "vllm" },
  (of) => {
    it("has prompts that extend each other: OpenAI's and Anthropic's clients in Python", async () => {
      const memories = JSON.stringify(Array.from({ length: TURNS }, (_, at) => memoriesOf(at)));
      const python = join(ENGINES_FOLDER, "vllm", "bin", "python");
      const child = spawn(python, [program("apis_program.py"), of().base, MODEL, memories]);
      const [said, errors] = await Promise.all([child.stdout.toArray(), child.stderr.toArray()]);
      expect(Buffer.concat(errors).toString()).toBe("");
      const lines = Buffer.concat(said).toString().trim().split("\n");
      const turns = lines.map((line) => turn.parse(JSON.parse(line)));
      for (const way of turn.shape.way.options) expectHeld(turns, way);
      const last = (way: Turn["way"]) => turns.findLast((one) => one.way === way)?.prompt ?? 0;
      // What is continued by an id has no memory twice, either.
      expect(last("continued")).toBeLessThan(1.1 * last("history"));
    }, 900_000);

    it("has prompts that extend each other: OpenAI's client in Node, streamed", async () => {
      const client = new OpenAI({ baseURL: `${of().base}/users/node/v1`, apiKey: "none", maxRetries: 0 });
      const turns: Turn[] = [];
      const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "system", content: "Be brief. Node." }];
      for (let at = 0; at < TURNS; at++) {
        messages.push({ role: "user", content: `Where did Ada live in year ${at}?` });
        const memprefix = { conversation_id: "node", retention: "keep", memories: memoriesOf(at) };
        const asked = { model: MODEL, messages, max_tokens: 8, temperature: 0, stream: true, memprefix } as const;
        const options = { stream_options: { include_usage: true } };
        const { data, response } = await client.chat.completions.create({ ...asked, ...options }).withResponse();
        let said = "";
        for await (const { choices, usage } of data) {
          said += choices[0]?.delta.content ?? "";
          if (usage != null) {
            const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
            turns.push({ way: "chat", turn: at, prompt: usage.prompt_tokens, cached, expected: expectedIn(response) });
          }
        }
        messages.push({ role: "assistant", content: said });
      }
      expectHeld(turns, "chat");
    }, 600_000);
  },
);

function expectedIn({ headers }: Response): number | null {
  const expected = headers.get("x-memprefix-expected-cached-tokens");
  return expected === null ? null : Number(expected);
}
