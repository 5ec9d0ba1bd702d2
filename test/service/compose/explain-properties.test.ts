import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatMessage, RequestId } from "../../../src/core/index.js";
import type { ComposeOptions } from "../../../src/service/fields/call-options.js";
import { hostileText } from "../../core/escaping/hostile-text.js";
import { ana, composeWith, openService } from "./service-fixture.js";

/** Something that a client does. */
type Step =
  | {
      readonly kind: "compose";
      /** Null: a single prompt. */
      readonly conversation: string | null;
      readonly system: number;
      /** Each memory with the version of its text. */
      readonly memories: readonly (readonly [id: number, version: number])[];
      readonly question: number;
      readonly policy: "retrieval" | "prefix-exact" | "sorted";
      readonly retention: "keep" | "volatile" | "ephemeral" | "auto";
      readonly tool: boolean;
      readonly model: string;
    }
  /** The client writes a message differently: it means the same. */
  | { readonly kind: "restate"; readonly conversation: string; readonly message: number }
  | { readonly kind: "edit"; readonly conversation: string; readonly message: number }
  | { readonly kind: "cut"; readonly conversation: string; readonly messages: number }
  | { readonly kind: "forget"; readonly id: number };

const conversation = fc.constantFrom("a", "b");
const composed = fc.record({
  kind: fc.constant("compose" as const),
  conversation: fc.option(conversation, { freq: 3 }),
  system: fc.nat({ max: 2 }),
  memories: fc.uniqueArray(fc.tuple(fc.nat({ max: 5 }), fc.constantFrom(0, 0, 0, 1)), {
    maxLength: 4,
    selector: ([id]) => id,
  }),
  question: fc.nat({ max: 2 }),
  policy: fc.constantFrom("retrieval" as const, "prefix-exact" as const, "sorted" as const),
  retention: fc.constantFrom(
    "keep" as const,
    "keep" as const,
    "volatile" as const,
    "ephemeral" as const,
    "auto" as const,
  ),
  tool: fc.boolean(),
  model: fc.constantFrom("m", "m", "qwen3"),
});
const changed = fc.oneof(
  fc.record({ kind: fc.constant("restate" as const), conversation, message: fc.nat({ max: 8 }) }),
  fc.record({ kind: fc.constant("edit" as const), conversation, message: fc.nat({ max: 8 }) }),
  fc.record({ kind: fc.constant("cut" as const), conversation, messages: fc.nat({ max: 4 }) }),
);
const anySteps = fc.array(fc.oneof({ weight: 6, arbitrary: composed }, { weight: 1, arbitrary: changed }), {
  minLength: 2,
  maxLength: 14,
});
const withForgetting = fc
  .tuple(anySteps, fc.nat({ max: 14 }), fc.nat({ max: 5 }))
  .map(([steps, at, id]): Step[] => [...steps.slice(0, at), { kind: "forget", id }, ...steps.slice(at)]);

const asked = {
  kind: "compose",
  memories: [],
  question: 0,
  policy: "retrieval",
  retention: "keep",
  tool: false,
  model: "m",
} as const;
/** A section of its own behind a tool's result, which retention took away before a memory of it was forgotten. */
const GONE_BEFORE_FORGOTTEN: Step[] = [
  { ...asked, conversation: "b", system: 0, memories: [[4, 0]], retention: "ephemeral", tool: true },
  { ...asked, conversation: "b", system: 0, memories: [[4, 0]] },
  { ...asked, conversation: "b", system: 1 },
  { ...asked, conversation: "b", system: 1 },
  { kind: "forget", id: 4 },
  { ...asked, conversation: null, system: 0 },
];

/** A prompt that was sent. */
interface Sent {
  readonly requestId: RequestId;
  readonly messages: readonly ChatMessage[];
}

const SYSTEMS = ["Be kind.", "Be kind. Today is Monday.", "Be kind. Today is Friday."];
/** Every character is a token: what is shared can be counted in the texts themselves. */
const countTokens = (text: string) => text.length;

/** Does all steps with a service, and gives what was sent. */
async function play(steps: readonly Step[], textOf = (id: number, version: number) => `Memory ${id} at ${version}`) {
  const service = openService({ countTokens });
  const histories = new Map<string, ChatMessage[]>();
  const sent: Sent[] = [];
  for (const step of steps) {
    const history = (step.kind === "forget" ? null : histories.get(step.conversation ?? "")) ?? [];
    if (step.kind === "forget") {
      await service.forgetMemory(ana, `m${step.id}` as never);
    } else if (step.kind === "restate") {
      const message = history[step.message];
      const text = String(message?.content);
      if (message !== undefined)
        history[step.message] = { ...message, content: text.endsWith(" ") ? text.trimEnd() : `${text} ` };
    } else if (step.kind === "edit") {
      const message = history[step.message];
      if (message !== undefined) history[step.message] = { ...message, content: `${message.content} indeed` };
    } else if (step.kind === "cut") {
      history.splice(0, step.messages);
    } else {
      const asked: ChatMessage[] = [...history, { role: "user", content: `Question ${step.question}` }];
      if (step.tool) asked.push({ role: "assistant", content: "Looking." }, { role: "tool", content: "Found." });
      const { requestId, messages } = await composeWith(service, {
        userId: "ana",
        conversationId: step.conversation,
        messages: asked,
        system: SYSTEMS[step.system] ?? null,
        memories: step.memories.map(([id, version]) => ({ id: `m${id}`, memory: textOf(id, version) })),
        policy: step.policy,
        retention: step.retention,
        model: step.model,
      } as ComposeOptions);
      sent.push({ requestId, messages });
      if (step.conversation !== null) {
        histories.set(step.conversation, [...asked, { role: "assistant", content: `Answer ${step.question}` }]);
      }
    }
  }
  return { service, sent };
}

/** Whole messages that two prompts begin with, and the characters that the next two begin with. */
function sharedBy(a: Sent, b: Sent): { messages: number; tokens: number } {
  let messages = 0;
  let tokens = 0;
  const text = ({ content }: ChatMessage) => content as string;
  for (const [at, message] of a.messages.entries()) {
    const other = b.messages[at];
    if (other === undefined || other.role !== message.role) break;
    const [one, two] = [text(message), text(other)];
    if (one !== two) {
      let same = 0;
      while (same < one.length && one[same] === two[same]) same++;
      return { messages, tokens: tokens + same };
    }
    messages++;
    tokens += one.length + 4;
  }
  return { messages, tokens };
}

describe("an explanation", () => {
  it("is of what was really sent: the nearest prompt, the message, and no more tokens than are the same", async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        const { service, sent } = await play(steps);
        for (const [n, prompt] of sent.entries()) {
          const { explanation } = await service.explain(ana, null, prompt.requestId);
          const { nearest, difference, tokens, index, cause, compared } = explanation;
          expect(compared).toBe(n);
          if (n === 0) {
            expect(cause.kind).toBe("first_prompt");
            continue;
          }
          const shared = sent.slice(0, n).map((earlier) => sharedBy(prompt, earlier));
          const near = shared[sent.findIndex(({ requestId }) => requestId === nearest?.requestId)];
          expect(near?.messages).toBe(Math.max(...shared.map(({ messages }) => messages)));
          expect(difference?.message).toBe(near?.messages);
          expect(tokens.shared).toBeLessThanOrEqual(near?.tokens ?? -1);
          // Nothing left the index here, so that it knew all there was, and no more than there was.
          expect(index.kind).not.toBe("left");
          expect(tokens.expected).toBeLessThanOrEqual(tokens.shared);
        }
        await service.close();
      }),
      { numRuns: 150 },
    );
  });

  it("claims no more than is the same where a memory was forgotten, at any time", async () => {
    await fc.assert(
      fc.asyncProperty(withForgetting, async (steps) => {
        const { service, sent } = await play(steps);
        for (const prompt of sent) {
          const { explanation } = await service.explain(ana, null, prompt.requestId);
          const { nearest, difference, tokens } = explanation;
          const earlier = sent.find(({ requestId }) => requestId === nearest?.requestId);
          if (earlier === undefined) continue;
          const near = sharedBy(prompt, earlier);
          expect(difference?.message).toBeLessThanOrEqual(near.messages);
          expect(tokens.shared).toBeLessThanOrEqual(near.tokens);
        }
        await service.close();
      }),
      { numRuns: 100, examples: [[GONE_BEFORE_FORGOTTEN]] },
    );
  });

  it("holds no text of memories or messages", async () => {
    const MARK = "s3cr3t";
    await fc.assert(
      fc.asyncProperty(withForgetting, fc.array(hostileText, { minLength: 6, maxLength: 6 }), async (steps, texts) => {
        const textOf = (id: number, version: number) =>
          `${MARK}${texts[id]}${MARK} ${id} ${version}`.replaceAll("\0", "");
        const { service, sent } = await play(steps, textOf);
        for (const { requestId } of sent) {
          const said = JSON.stringify(await service.explain(ana, null, requestId));
          for (const text of [MARK, "Question", "Answer", "Looking", "Be kind", "indeed"])
            expect(said).not.toContain(text);
        }
        await service.close();
      }),
      { numRuns: 50 },
    );
  });
});
