import { Conversation, type RecalledHistory, recallHistory, standingOf } from "../conversation/conversation.js";
import { standingInjections } from "../conversation/turn.js";
import type { ToolMemories } from "../prompt/injection.js";
import type { DigestedMessages } from "../prompt/prompt.js";
import { stripSection } from "../prompt/rendering.js";
import { type ConversationId, type Digest, digestOf, type MemoryId } from "../text/ids.js";
import { type ChatMessage, instructionsAtHead, messageDigest } from "../text/message.js";
import type { ScopeState } from "./scope-state.js";

/** The part of a request that says what it continues. */
export interface PastInput {
  /** The conversation with its stored turns; null for the `single` layout. */
  readonly conversation: { readonly id: ConversationId; readonly turns: Conversation } | null;
  /**
   * Instructions, history and, last, the new question or tool result. Plain: without injected sections, or with sections that `isOurs`
   * recognises.
   */
  readonly messages: readonly ChatMessage[];
  /** Where memories go after a tool's result. Default: as in the conversation's earlier turns, else in a message of their own. */
  readonly toolMemories?: ToolMemories | null | undefined;
  /** Whether memstem sent a section with this digest to this scope. */
  readonly isOurs: (section: Digest) => boolean;
  /** What {@link recallPast} gave for this very input; null: not asked yet. Not used once `messages` are others. */
  readonly recalled?: Past | null | undefined;
}

/** Everything before a new turn: the instructions, the turns recognised in the history, and the client's new messages. */
export interface Past {
  /** The instructions at the head of the prompt. */
  readonly head: DigestedMessages;
  readonly turns: Conversation;
  readonly history: RecalledHistory;
  /** The request's messages. */
  readonly messages: readonly ChatMessage[];
}

/** Digests of everything in some messages that `isOurs` may be asked about: whatever has a section's form. */
export function possibleSections(messages: readonly ChatMessage[]): readonly Digest[] {
  const found = new Set<Digest>();
  for (const message of messages) {
    stripSection(message, (section) => {
      found.add(digestOf(section));
      // What is not ours is looked at in every way that a section can stand in a message.
      return false;
    });
  }
  return [...found];
}

/**
 * Recognises the conversation that a request continues. Pure: does not change `conversation`.
 *
 * @param continues false: the request begins afresh, whatever it could continue
 */
export function recallPast(input: PastInput, continues = true): Past {
  const { conversation, messages, isOurs, toolMemories = null, recalled = null } = input;
  if (continues && recalled?.messages === messages) return recalled;
  const head = messages.slice(0, instructionsAtHead(messages));
  const turns = conversation?.turns ?? new Conversation([]);
  const continued = continues ? turns : new Conversation([]);
  const history = recallHistory(continued, messages.slice(head.length), isOurs, toolMemories);
  return { head: { messages: head, digests: head.map(messageDigest) }, turns, history, messages };
}

/**
 * The memories of a source whose current text earlier turns of a conversation gave, the newest last: what the conversation takes for true
 * of what searches found. Pure.
 */
export function standingMemories({ register }: Pick<ScopeState, "register">, input: PastInput): readonly MemoryId[] {
  const turns = recallPast(input).history.turns.map(({ turn }) => turn);
  const { given, replaced } = standingOf(standingInjections(turns, false));
  const labels = [...given].filter((label) => !replaced.has(label)).sort((a, b) => a - b);
  return [...new Set(labels.flatMap((label) => register.foundWith(label)))];
}
