import {
  type ChatMessage,
  type Injection,
  messageText,
  NOTHING_INJECTED,
  type PlacedMemory,
  type Plan,
  type RequestId,
  renderAnnotation,
  renderSection,
  type Scope,
  standingInjections,
  type TextOf,
  turnMessages,
  type Warning,
} from "../../core/index.js";
import type { EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import type { AnsweredRequest, StoredAnswer } from "../../store/api/store.js";
import { enginePrompt } from "./engine-prompt.js";

/** What to send along to the engine. */
export interface EngineHints {
  /** Fields to put into the engine's request body. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Headers to put on it; the request id makes the engine's eviction events name this request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A composed prompt as callers get it. */
export interface ComposeAnswer {
  readonly requestId: RequestId;
  /** With the engine's own marks, where it has any. */
  readonly messages: readonly ChatMessage[];
  /** The prompt as one text, where it was asked for: for completion endpoints without a chat template. */
  readonly prompt?: string;
  /** Every distinct memory asked for: this turn's in prompt order, then those given earlier. */
  readonly blocks: readonly PlacedMemory[];
  /** This turn's annotation lines, as they stand in the prompt. */
  readonly annotations: readonly string[];
  readonly plan: Plan;
  readonly engine: EngineHints;
  readonly warnings: readonly Warning[];
}

/** In what form an answer is wanted. */
export interface AnswerForm {
  /** Whether it holds the prompt as one text too. */
  readonly prompt: boolean;
  /** The engine family that the prompt goes to. */
  readonly engine: EngineAdapter;
  /** Cache marks that the request to the engine has outside its messages. */
  readonly marksElsewhere: number;
  /** What the tenant's cache salts are made of. */
  readonly cacheSecret: string;
}

/** What was composed, as an answer needs it. */
export interface Composed {
  readonly requestId: RequestId;
  readonly scope: Scope;
  readonly messages: readonly ChatMessage[];
  /** The instructions at the front of the messages. */
  readonly head: readonly ChatMessage[];
  /** What this turn put into them … */
  readonly injection: Injection;
  /** … and its annotations, as lines. */
  readonly annotations: readonly string[];
}

/** Puts an answer together; the same for a new one and for one that was stored. */
export function composeAnswer(
  composed: Composed,
  { memories, plan, warnings }: StoredAnswer,
  form: AnswerForm,
): ComposeAnswer {
  const { requestId, messages, annotations } = composed;
  const served = { ...composed, head: composed.head.length, plan, cacheSecret: form.cacheSecret };
  const emitted = form.engine.emit({ ...enginePrompt(served), marksElsewhere: form.marksElsewhere });
  return {
    requestId,
    messages: emitted.messages,
    ...(form.prompt ? { prompt: promptText(messages) } : {}),
    blocks: memories,
    annotations,
    plan,
    engine: { fields: emitted.fields, headers: emitted.headers },
    warnings,
  };
}

/** Builds a stored answer again: the messages from the turns, byte for byte as they were, less what was forgotten since. */
export function answerAgain(
  { requestId, scope }: Pick<Composed, "requestId" | "scope">,
  request: AnsweredRequest,
  textOf: TextOf,
  form: AnswerForm,
): ComposeAnswer {
  const turns = request.turns.map(({ turn }) => turn);
  const last = turns.at(-1);
  const standing = standingInjections(turns.slice(0, -1), last?.freshStart ?? false);
  if (last !== undefined) standing.push(last.injection);
  const messages = [
    ...request.head,
    ...request.turns.flatMap(({ turn, given }, at) =>
      turnMessages(given, turn.placement, renderSection(standing[at] ?? NOTHING_INJECTED, textOf)),
    ),
  ];
  const injection = last?.injection ?? NOTHING_INJECTED;
  const annotations = injection.annotations.map(renderAnnotation);
  return composeAnswer(
    { requestId, scope, messages, head: request.head, injection, annotations },
    request.answer,
    form,
  );
}

const SPEAKERS: Readonly<Record<string, string>> = {
  system: "System",
  developer: "System",
  user: "User",
  assistant: "Assistant",
  tool: "Tool",
  function: "Tool",
};

/** Append-only like the messages: a longer conversation's text begins with the shorter one's, less its last line. */
function promptText(messages: readonly ChatMessage[]): string {
  const turns = messages.map((message) => `${SPEAKERS[message.role] ?? message.role}: ${messageText(message)}\n\n`);
  return `${turns.join("")}Assistant:`;
}
