import {
  type ChatMessage,
  type ConversationId,
  DEFAULT_HISTORY_RATIO,
  type Digest,
  findWindow,
  type HistoryName,
  type HistoryTerms,
  instructionsAtHead,
  meaningOf,
  possibleSections,
  type RecalledHistory,
  recallHistory,
  type Warning,
  type Window,
  type WindowTerms,
  withCut,
  withoutMarks,
} from "../../core/index.js";
import type { Store, StoredHistory } from "../../store/store.js";
import type { WorkingConversation, WorkingScope } from "../scopes/working-scopes.js";
import type { RequestTerms } from "./request-terms.js";

const HISTORY_CUT: Warning = {
  code: "history_cut",
  message: "a memory was forgotten: the stored history ends before the turn that was given it",
};

const ANSWER_MISSING: Warning = {
  code: "answer_missing",
  message: "the stored history ends with a question: send the assistant's answer to it in front of the new one",
};

/** A request's messages, and which others of its conversation the prompt may have. */
export interface SaidMessages {
  readonly messages: readonly ChatMessage[];
  /** Absent: exactly `messages`. */
  readonly historyTerms?: HistoryTerms;
  readonly warnings: readonly Warning[];
}

/** The request's messages, and the stored conversation if the request leaves it out. */
export function readHistory(
  { request, history }: RequestTerms,
  { history: stored, conversation }: StoredPast,
): SaidMessages {
  const { messages, historyRatio } = request;
  if (conversation === null) return { messages, warnings: [] };
  const terms: HistoryTerms = {
    added: 0,
    ratio: historyRatio ?? DEFAULT_HISTORY_RATIO,
    isByCost: history === "auto",
    mayCut: history !== "exact",
    window: null,
  };
  const cut = history === "stored" && conversation.isCut ? [HISTORY_CUT] : [];
  if (history === "stored" && stored !== null) {
    const { added, warnings, ...said } = behindStored(stored, messages);
    return { ...said, warnings: [...cut, ...warnings], historyTerms: { ...terms, added } };
  }
  const window = stored === null ? null : windowTerms(stored, messages, history);
  if (history === "exact" && window === null) return { messages, warnings: [] };
  return { messages, historyTerms: { ...terms, window }, warnings: cut };
}

/** The stored history, then the new messages. The request's own instructions, if any, replace those of the newest prompt. */
function behindStored(stored: StoredHistory, messages: readonly ChatMessage[]): SaidMessages & { added: number } {
  const { head: own, said: fresh } = withoutHead(messages);
  const head = own.length > 0 ? own : stored.head;
  const isUnanswered = stored.messages.at(-1)?.role === "user" && fresh[0]?.role === "user";
  return {
    messages: [...head, ...stored.messages.map(withoutMarks), ...fresh],
    added: head.length - own.length + stored.messages.length,
    warnings: isUnanswered ? [ANSWER_MISSING] : [],
  };
}

/** The terms of a window; null: not a window. It may also continue the turn before the newest: a question asked again, or edited. */
function windowTerms(
  stored: StoredHistory,
  messages: readonly ChatMessage[],
  history: HistoryName,
): WindowTerms | null {
  const { head, said } = withoutHead(messages);
  const before = {
    ...stored,
    messages: stored.messages.slice(0, -stored.newest),
    prompts: stored.prompts.slice(0, -1),
  };
  for (const known of [stored, before]) {
    const window = findWindow(known.messages, said);
    if (window === null) continue;
    return history === "exact" ? exactTerms(window) : continuedTerms(known, window, history, head, said);
  }
  return isAskedAgain(stored, said) ? { kind: "begins", reason: "window" } : null;
}

function exactTerms({ kind }: Window): WindowTerms | null {
  if (kind === "longer" || kind === "pruned") return null;
  return { kind: "begins", reason: kind === "summarised" ? "summary" : "window" };
}

/** @param history `extended`: also restores what is missing between messages that were sent */
function continuedTerms(
  { messages, prompts, behind }: StoredHistory,
  window: Window,
  history: HistoryName,
  head: readonly ChatMessage[],
  said: readonly ChatMessage[],
): WindowTerms | null {
  const mayBeRemoved = window.kind === "pinned" || window.kind === "pruned";
  if (window.kind === "summarised" || (mayBeRemoved && history !== "extended")) return exactTerms(window);
  const leftOut = window.kind === "longer" ? window.inFront : 0;
  const last = said[leftOut - 1];
  if (last !== undefined && meaningOf(last) !== behind) return null;
  const whole = withCut(messages, said.slice(leftOut), window);
  return { kind: "continued", messages: [...head, ...whole.messages], added: whole.added, leftOut, prompts };
}

/** Whether the first question of an epoch is repeated or edited, after the same messages. */
function isAskedAgain({ messages, newest, hasOwnHead }: StoredHistory, said: readonly ChatMessage[]): boolean {
  if (!hasOwnHead || newest !== messages.length || said.length !== newest) return false;
  return messages.slice(0, -1).every((message, at) => meaningOf(message) === meaningOf(said[at] as ChatMessage));
}

function withoutHead(messages: readonly ChatMessage[]) {
  const first = instructionsAtHead(messages);
  return { head: messages.slice(0, first), said: messages.slice(first) };
}

/** What is stored of a request's past. Read in advance, because planning is synchronous. */
export interface StoredPast {
  /** Null: the `single` layout. */
  readonly conversation: (WorkingConversation & { readonly id: ConversationId }) | null;
  /** Null if the request has the history itself, or none is stored. */
  readonly history: StoredHistory | null;
  readonly isOurs: (section: Digest) => boolean;
  /** The past by the request's own messages; null if it was not needed. */
  readonly recalled: RecalledHistory | null;
}

/** Reads a request's stored past, mostly from memory. Changes nothing. */
export async function readPast(
  store: Pick<Store, "findHistory" | "knownSections">,
  working: WorkingScope,
  { request, history: name, isInResult: inResult, keepsInstructions }: RequestTerms,
): Promise<StoredPast> {
  const { conversationId: id, messages } = request;
  const { scopeId } = working;
  const known = new Set<Digest>();
  const isOurs = (section: Digest) => known.has(section);
  const learn = async (said: readonly ChatMessage[]) => {
    const asked = possibleSections(said);
    if (asked.length > 0) for (const section of await store.knownSections(scopeId, asked)) known.add(section);
  };
  await learn(messages);
  if (id === null) return { conversation: null, history: null, isOurs, recalled: null };
  const conversation = { ...(await working.conversation(id)), id };
  const { newest } = conversation.turns;
  const recalled = recallHistory({ conversation, messages, isOurs, inResult, keepsInstructions });
  const isCut = newest !== undefined && recalled.turns.at(-1)?.turn !== newest;
  const history = name === "stored" || isCut ? await store.findHistory(scopeId, id) : null;
  // A client may have said it in a section's form.
  if (history !== null) await learn(history.messages);
  // With more known sections the same messages may say less.
  return { conversation, history, isOurs, recalled: history === null ? recalled : null };
}
