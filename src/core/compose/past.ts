import { Conversation, type RecalledHistory, recallHistory } from "../conversation/conversation.js";
import type { DigestedMessages } from "../prompt/prompt.js";
import type { ToolMemories } from "../prompt/section-placement.js";
import type { ConversationId, Digest } from "../text/ids.js";
import { type ChatMessage, isInstruction, messageDigest } from "../text/message.js";

/** What of a request says where it goes on from. */
export interface PastInput {
  /** The conversation and what is remembered of it; null for the `single` layout. */
  readonly conversation: { readonly id: ConversationId; readonly turns: Conversation } | null;
  /** Instructions, history and, last, the new question or tool result. Plain: no injected text, or text that `isOurs` knows. */
  readonly messages: readonly ChatMessage[];
  /** Where memories stand behind a tool's result. Default: as earlier turns of the conversation had it, at first a message of their own. */
  readonly toolMemories?: ToolMemories | null | undefined;
  /** Whether memstem once sent a section with this digest to this scope. */
  readonly isOurs: (section: Digest) => boolean;
}

/** What stands before a turn: the instructions, the turns that its history is recognised as, and what the client said since. */
export interface Past {
  /** The instructions at the head of the prompt. */
  readonly head: DigestedMessages;
  readonly turns: Conversation;
  readonly history: RecalledHistory;
}

/** Recognises what a request goes on from. Reads `conversation` and changes nothing. */
export function recallPast({ conversation, messages, isOurs, toolMemories = null }: PastInput): Past {
  const head = messages.slice(0, instructionsAtHead(messages));
  const turns = conversation?.turns ?? new Conversation([]);
  const history = recallHistory(turns, messages.slice(head.length), isOurs, toolMemories);
  return { head: { messages: head, digests: head.map(messageDigest) }, turns, history };
}

/** How many messages at the front are instructions. */
function instructionsAtHead(messages: readonly ChatMessage[]): number {
  const first = messages.findIndex((message) => !isInstruction(message));
  return first < 0 ? messages.length : first;
}
