import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChatMessage, messageText } from "../../../src/core/index.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import { MessagesTooLongError } from "../../../src/service/base/errors.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { ComposeOptions } from "../../../src/service/fields/call-options.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { openService } from "./service-fixture.js";

/** What a client does to its history before it sends it. */
const CUTS = {
  nothing: (said) => said,
  "the last six": (said) => said.slice(-6),
  "the last nine": (said) => said.slice(-9),
  "from a user's message": (said) => said.slice(Math.max(0, said.length - 8)).slice(firstOf(said.slice(-8), "user")),
  "inside a message": (said) => said.slice(-5).map((message, at) => (at === 0 ? endOf(message) : message)),
  "a pinned first": (said) => (said.length < 8 ? said : [...said.slice(0, 1), ...said.slice(-6)]),
  "a summary": (said) => (said.length < 8 ? said : [{ role: "user", content: "So far: much." }, ...said.slice(-5)]),
  "tool calls": (said) =>
    said
      .slice(0, -3)
      .filter((message) => !isTool(message))
      .concat(said.slice(-3)),
} satisfies Record<string, (said: readonly ChatMessage[]) => readonly ChatMessage[]>;

function firstOf(messages: readonly ChatMessage[], role: string): number {
  return Math.max(
    0,
    messages.findIndex((message) => message.role === role),
  );
}

function endOf(message: ChatMessage): ChatMessage {
  return typeof message.content === "string" ? { ...message, content: message.content.slice(4) } : message;
}

function isTool({ role, tool_calls }: ChatMessage): boolean {
  return role === "tool" || tool_calls !== undefined;
}

const step = fc.record({
  cut: fc.constantFrom(...(Object.keys(CUTS) as (keyof typeof CUTS)[])),
  does: fc.constantFrom("asks", "asks", "asks", "asks", "calls a tool", "asks again", "edits an answer"),
  memories: fc.uniqueArray(fc.nat(30), { maxLength: 8 }),
  restarts: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A client that keeps its conversation and sends what it cuts of it. */
class Client {
  said: ChatMessage[] = [];
  #calls = 0;

  send({ cut, does }: Step): readonly ChatMessage[] {
    const n = this.said.length;
    if (does === "asks again" && n > 1) this.said.pop();
    if (does === "edits an answer" && n > 4)
      this.said[n - 3] = { ...(this.said[n - 3] as ChatMessage), content: `Edited ${n}.` };
    if (does === "calls a tool" && n > 0) {
      const id = `call-${++this.#calls}`;
      const call = { id, type: "function", function: { name: "look", arguments: "{}" } };
      this.said.pop();
      this.said.push({ role: "assistant", content: null, tool_calls: [call] });
      this.said.push({ role: "tool", tool_call_id: id, content: `Result ${id}: it was found where it had been left.` });
    } else if (this.said.at(-1)?.role !== "user") {
      this.said.push({ role: "user", content: `Question ${n}: where is what was lost, and who has it now?` });
    }
    return CUTS[cut](this.said);
  }

  answer(): void {
    this.said.push({ role: "assistant", content: `Answer ${this.said.length}: it is where it was put, as ever.` });
  }
}

const textOf = (memory: number) => `Ana's thing ${memory} is in the ${memory * 7 + 3}th drawer.`;

function expectSound(answer: ComposeAnswer, sent: readonly ChatMessage[], memories: readonly number[]): void {
  const texts = answer.messages.map(messageText);
  const lines = texts.flatMap((text) => text.split("\n"));
  const named = answer.warnings.flatMap(({ code, memoryIds }) => (code === "memory_left_out" ? (memoryIds ?? []) : []));
  for (const memory of memories)
    if (!named.includes(`m${memory}` as never)) expect(lines.some((line) => line.endsWith(textOf(memory)))).toBe(true);
  // A line repeats a memory of the prompt, and no memory is listed twice.
  const listed = lines.filter((line) => line.startsWith("- Ana's thing "));
  expect(new Set(listed).size).toBe(listed.length);
  for (const line of lines) {
    const [, repeated] = /^Most relevant: (.*)$/.exec(line) ?? [];
    if (repeated !== undefined) expect(listed).toContain(`- ${repeated}`);
  }
  // A result of a tool stays behind its call.
  for (const [at, message] of answer.messages.entries()) {
    if (
      message.role !== "tool" ||
      !sent.some(({ tool_calls }) => JSON.stringify(tool_calls)?.includes(String(message.tool_call_id)))
    )
      continue;
    const before = answer.messages
      .slice(0, at)
      .some(({ tool_calls }) => JSON.stringify(tool_calls)?.includes(String(message.tool_call_id)));
    expect(before).toBe(true);
  }
  const newest = sent.at(-1) as ChatMessage;
  expect(texts.slice(-2).join("\n")).toContain(messageText(newest));
}

describe("a conversation that does not end", () => {
  const newFolder = temporaryFolders();

  it("stays within its limit, gives or names each memory, and goes on byte for byte where its service is restarted", async () => {
    const history = fc.constantFrom("auto", "extended", "exact");
    const steps = fc.array(step, { minLength: 5, maxLength: 40 });
    const property = fc.asyncProperty(history, fc.constantFrom(420, 900, 8_000), steps, async (name, limit, taken) => {
      const directory = newFolder();
      const steady = openService();
      let restarted = openService({ directory });
      const client = new Client();
      for (const [at, each] of taken.entries()) {
        const messages = [...client.send(each)];
        const options = {
          userId: "ana",
          conversationId: "c",
          system: "Be kind.",
          messages,
          memories: each.memories.map((memory) => ({ id: `m${memory}`, memory: textOf(memory) })),
          history: name,
          maxPromptTokens: limit,
          requestId: `r${at}`,
        } satisfies ComposeOptions;
        const [answer, other] = await Promise.all([composed(steady, options), composed(restarted, options)]);
        expect(other).toEqual(answer);
        client.answer();
        if (answer === null) continue;
        expect(answer.plan.totalTokens).toBeLessThanOrEqual(limit);
        expectSound(answer, messages, each.memories);
        if (!each.restarts) continue;
        await restarted.close();
        restarted = openService({ directory });
        expect(await composed(restarted, options)).toEqual(answer);
      }
      await Promise.all([steady.close(), restarted.close()]);
    });
    await fc.assert(property, { numRuns: Number(process.env["LONG_RUNS"] ?? 40) });
  });
});

/** Null where the messages that must stay are too long alone. */
async function composed(service: Memprefix, options: ComposeOptions): Promise<ComposeAnswer | null> {
  try {
    return await service.compose(readComposeOptions(options));
  } catch (error) {
    if (error instanceof MessagesTooLongError) return null;
    throw error;
  }
}
