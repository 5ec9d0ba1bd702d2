import {
  type ChatMessage,
  messageText,
  NOTHING_INJECTED,
  type PlacedMemory,
  type Plan,
  type RequestId,
  renderAnnotation,
  renderSection,
  standingInjections,
  type TextOf,
  turnMessages,
  type Warning,
} from "../core/index.js";
import type { AnsweredRequest, StoredAnswer } from "../store/store.js";

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

/** Puts an answer together; the same for a new one and for one that was stored. */
export function composeAnswer(
  requestId: RequestId,
  messages: readonly ChatMessage[],
  annotations: readonly string[],
  stored: StoredAnswer,
  wantsPrompt: boolean,
): ComposeAnswer {
  return {
    requestId,
    messages,
    ...(wantsPrompt ? { prompt: promptText(messages) } : {}),
    blocks: stored.memories,
    annotations,
    plan: stored.plan,
    engine: { fields: {}, headers: { "x-request-id": requestId } },
    warnings: stored.warnings,
  };
}

/** Builds a stored answer again: the messages from the turns, byte for byte as they were, less what was forgotten since. */
export function answerAgain(
  requestId: RequestId,
  request: AnsweredRequest,
  textOf: TextOf,
  wantsPrompt: boolean,
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
  const annotations = last?.injection.annotations.map(renderAnnotation) ?? [];
  return composeAnswer(requestId, messages, annotations, request.answer, wantsPrompt);
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
