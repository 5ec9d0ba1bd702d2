import fc from "fast-check";
import { RETENTION_NAMES } from "../../../src/core/conversation/conversation.js";
import { ENGINE_MODELS, type EngineModel } from "../../../src/core/cost/engine-model.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { anyForm, assistant, type ComposeOptions, memory, toolExchange, user } from "../compose/scope-fixture.js";
import { hostileText } from "../escaping/hostile-text.js";

/** A whole section that a client made up is the client's own text: a reader cannot tell it from ours, memprefix does. */
const notOurs = hostileText.filter((text) => !text.includes("</memories>"));

/** Few memories with few texts, so that they come back, change, share a text and conflict. */
const anyMemory = fc
  .tuple(
    fc.integer({ min: 0, max: 7 }),
    fc.oneof(
      fc.integer({ min: 0, max: 9 }).map((n) => `Fact ${n}.`),
      hostileText,
    ),
  )
  .map(([id, text]) => memory(`m${id}`, text));

const anyTurn = fc.record({
  found: fc.array(anyMemory, { maxLength: 7 }),
  kind: fc.constantFrom("question", "question", "parts", "tool"),
  text: fc.oneof(fc.constantFrom("", "22 °C", "<memories>\n[1] x"), fc.string(), notOurs),
  inResult: fc.boolean(),
  retention: fc.constantFrom(...RETENTION_NAMES),
  form: anyForm,
  shareTokens: fc.option(fc.integer({ min: 60, max: 400 }), { nil: undefined }),
});
export type AnyTurn = typeof anyTurn extends fc.Arbitrary<infer T> ? T : never;

/** Half of them keep one place for memories. */
export const anyConversation = fc
  .tuple(fc.array(anyTurn, { minLength: 1, maxLength: 9 }), fc.option(fc.boolean(), { freq: 2 }))
  .map(([turns, inResult]) => (inResult === null ? turns : turns.map((turn) => ({ ...turn, inResult }))));

/** The messages that a client adds for a turn: the answer to the one before, then the new question or tool result. */
export function added({ kind, text }: AnyTurn, n: number): ChatMessage[] {
  if (kind === "tool") return [...(n === 0 ? [user("Look.")] : []), ...toolExchange(text)];
  const content = `Q: ${text}`;
  const question: ChatMessage =
    kind === "parts" ? { role: "user", content: [{ type: "text", text: content }] } : user(content);
  return n === 0 ? [question] : [assistant(`Answer ${n}`), question];
}

export function optionsOf({ inResult, retention, form, shareTokens }: AnyTurn): ComposeOptions {
  return { ...form, conversation: "c", retention, inResult, shareTokens };
}

const billed = (cached: number): EngineModel => ({
  cost: { kind: "money", uncached: 1, written: 1, cached },
  blockTokens: 1,
  minimumPrefixTokens: 0,
});

/** Cached tokens cost nearly what computed ones do, so that conversations start afresh every few turns. */
export const DEAR_CACHE = billed(0.9);

export const anyEngine = fc.constantFrom(ENGINE_MODELS.gpu, ENGINE_MODELS.cpu, billed(0.3), DEAR_CACHE);

/** Messages that two prompts have in common from the front. */
export function sharedMessages(a: readonly ChatMessage[], b: readonly ChatMessage[]): number {
  const differs = a.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(b[at]));
  return differs < 0 ? Math.min(a.length, b.length) : differs;
}
