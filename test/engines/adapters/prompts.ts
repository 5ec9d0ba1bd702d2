import fc from "fast-check";
import {
  type ChatMessage,
  type ContentPart,
  type Label,
  type RequestId,
  renderSection,
  SECTION_CLOSING,
} from "../../../src/core/index.js";
import type { AdapterPrompt } from "../../../src/engines/adapters/engine-adapter.js";

/** What a turn injects: a section with so many blocks, and an annotation where it is asked for. */
export function section(blocks: number, annotated: boolean): string {
  const labels = Array.from({ length: blocks }, (_, at) => (at + 1) as Label);
  return renderSection(
    {
      blocks: labels.map((label) => ({ label })),
      annotations: annotated ? [{ kind: "location", labels: [9 as Label], after: 0 }] : [],
    },
    (label) => `fact ${label}\nand more`,
  );
}

/** A question with memories before it, as the composer makes it. */
export function asked(question: string, blocks = 2, annotated = false): ChatMessage {
  return { role: "user", content: `${section(blocks, annotated)}\n\n${question}` };
}

export const system: ChatMessage = { role: "system", content: "Be brief." };
export const answered: ChatMessage = { role: "assistant", content: "Green tea." };

export function promptOf(messages: readonly ChatMessage[], more: Partial<AdapterPrompt> = {}): AdapterPrompt {
  return {
    requestId: "r-1" as RequestId,
    tenantKey: "tenant-key",
    scopeKey: "scope-key",
    messages,
    reusableMessages: [messages.length - 1, 0],
    ...more,
  };
}

/** A message's text, whether it is one string or parts. */
export function textOf({ content }: ChatMessage): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
}

/** Every mark in the messages, on parts and on messages themselves. */
export function marksIn(messages: readonly ChatMessage[], field: string): readonly (readonly [number, number])[] {
  return messages.flatMap((message, at) => {
    const parts: readonly ContentPart[] = typeof message.content === "string" ? [] : (message.content ?? []);
    const onParts = parts.flatMap((part, n) => (part[field] == null ? [] : [[at, n] as const]));
    return message[field] == null ? onParts : [...onParts, [at, -1] as const];
  });
}

const words = fc.oneof(
  fc.string(),
  fc.constantFrom("", " ", "Tea?", "<memories>\n", "<memories>\n</memories>", `${section(1, false)}x`),
  fc.tuple(fc.integer({ min: 1, max: 3 }), fc.boolean(), fc.string()).map(([blocks, annotated, rest]) => {
    return `${section(blocks, annotated).replace(/<\/memories>$/, "")}${SECTION_CLOSING}${rest}`;
  }),
);
const callersMark = fc.option(
  fc.constantFrom<Record<string, unknown>>(
    { cache_control: { type: "ephemeral", ttl: "1h" } },
    { prompt_cache_breakpoint: { mode: "explicit" } },
  ),
  { nil: {}, freq: 3 },
);
const part: fc.Arbitrary<ContentPart> = fc.oneof(
  fc.tuple(words, callersMark).map(([text, mark]) => ({ type: "text", text, ...mark })),
  callersMark.map((mark) => ({ type: "image_url", image_url: { url: "https://example.org/a.png" }, ...mark })),
);
const call = { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } };
const message: fc.Arbitrary<ChatMessage> = fc.oneof(
  fc.record({
    role: fc.constantFrom("system", "developer", "user", "assistant", "tool"),
    content: fc.oneof(words, fc.array(part, { maxLength: 4 }), fc.constant(null)),
  }),
  fc.constant<ChatMessage>({ role: "assistant", tool_calls: [call] }),
);

/** Any prompt, its indexes wrong at times: an adapter must not depend on them for what it promises. */
export const anyPrompt: fc.Arbitrary<AdapterPrompt> = fc
  .record({
    messages: fc.array(message, { minLength: 1, maxLength: 30 }),
    reusableMessages: fc.array(fc.integer({ min: -1, max: 31 }), { maxLength: 5 }),
    reusableMemories: fc.option(fc.integer({ min: 0, max: 31 }), { nil: undefined }),
    cachedMessage: fc.option(fc.integer({ min: 0, max: 31 }), { nil: undefined }),
    marksElsewhere: fc.record({
      tools: fc.array(fc.constantFrom({ type: "ephemeral", ttl: "1h" }, { type: "ephemeral" }), { maxLength: 4 }),
      automatic: fc.constantFrom(null, null, { type: "ephemeral" }, { type: "ephemeral", ttl: "1h" }),
    }),
  })
  .map(({ messages, reusableMemories, cachedMessage, ...more }) =>
    promptOf(messages, {
      ...more,
      ...(reusableMemories === undefined ? {} : { reusableMemories }),
      ...(cachedMessage === undefined ? {} : { cachedMessage }),
    }),
  );
