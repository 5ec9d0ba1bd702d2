/* History: a client's plain messages, recognised as a path of its conversation's turns. */

import type { BlockRegister } from "../blocks/block-register.js";
import { WITHDRAWN } from "../blocks/context-block.js";
import type { DigestedMessages } from "../prompt/prompt.js";
import {
  isEmptyInjection,
  isOwnMessage,
  labelsIn,
  ownMessageBehind,
  type SectionPlacement,
  stripSection,
} from "../prompt/section.js";
import { append } from "../text/collections.js";
import { type ConversationId, type Digest, digestOf, type Label, type MemoryId } from "../text/ids.js";
import { type ChatMessage, instructionsAtHead, meaningDigest, messageDigest } from "../text/message.js";
import { Conversation, DROPS_NOTHING, standingInjections, standingOf, type Turn } from "./conversation.js";
import { changedInstructions, type InstructionChange } from "./instructions.js";

export interface HistoryInput {
  readonly conversation: { readonly id: ConversationId; readonly turns: Conversation } | null;
  /** Instructions, history and, last, the question or tool result. May contain sections that `isOurs` recognises. */
  readonly messages: readonly ChatMessage[];
  /** Whether memories go into tool results. Default: as in earlier turns, else in a message of their own. */
  readonly inResult?: boolean | undefined;
  /** Whether the conversation keeps the instructions of its newest prompt. Default: no. */
  readonly keepsInstructions?: boolean | undefined;
  /** Whether memprefix sent a section with this digest to this scope. */
  readonly isOurs: (section: Digest) => boolean;
  /** The result of {@link recallHistory} for this input. Ignored once `messages` change. */
  readonly recalled?: RecalledHistory | null | undefined;
}

export interface RecalledTurn {
  readonly turn: Turn;
  readonly messages: readonly ChatMessage[];
  readonly digests: readonly Digest[];
  readonly placement: SectionPlacement;
  /** Whether its bytes differ from those sent before, with the same meaning. */
  readonly isRestated: boolean;
}

/** `meant`: digests of the messages' meanings. */
export interface MeantMessages extends DigestedMessages {
  readonly meant: readonly Digest[];
}

export interface RecalledHistory {
  readonly head: DigestedMessages;
  /** The request's own instructions; they are the head of a fresh start. */
  readonly ownHead: DigestedMessages;
  /** What they change of the head; null: they are the head. */
  readonly changes: InstructionChange | null;
  readonly conversation: Conversation;
  /** First to last; their injections are replayed. */
  readonly turns: readonly RecalledTurn[];
  /** Plain messages after those turns: new ones, and everything after an edit. The last one is the new turn's. */
  readonly rest: MeantMessages;
  readonly placement: SectionPlacement;
  readonly stripped: number;
  /** Whether the history was edited, regenerated or truncated: the conversation has other turns. */
  readonly diverged: boolean;
  /** It ends before a turn that gave a memory which no longer holds. */
  readonly endsEarly?: true;
  readonly messages: readonly ChatMessage[];
}

/** Digests of every text with a section's form, for `isOurs`. */
export function possibleSections(messages: readonly ChatMessage[]): readonly Digest[] {
  const found = new Set<Digest>();
  for (const message of messages) {
    stripSection(message, (section) => {
      found.add(digestOf(section));
      // Texts that are not ours are searched for every position of a section.
      return false;
    });
  }
  return [...found];
}

/**
 * Matches a plain history against a conversation's turns by meaning. The branch that covers most messages wins; the last message is always new.
 *
 * @param messages replace the request's
 * @param continues false: starts afresh
 */
export function recallHistory(
  input: HistoryInput,
  messages: readonly ChatMessage[] = input.messages,
  continues = true,
): RecalledHistory {
  const { isOurs, inResult = false, recalled = null } = input;
  if (continues && recalled?.messages === messages) return recalled;
  const conversation = input.conversation?.turns ?? new Conversation([]);
  const continued = continues ? conversation : new Conversation([]);
  const instructions = messages.slice(0, instructionsAtHead(messages));
  const said = messages.slice(instructions.length);
  let stripped = 0;
  const bared = said.flatMap((message): ChatMessage[] => {
    const bare = stripSection(message, (section) => isOurs(digestOf(section)));
    if (bare !== message) stripped++;
    return bare === null ? [] : [bare];
  });
  // A prompt needs a last message, even if it is only a section that was sent back.
  const plain = bared.length > 0 ? bared : said.slice(-1);
  const digests = plain.map(messageDigest);
  const meant = plain.map((message, at) => meaningDigest(message, digests[at] as Digest));
  const path = followedPath(continued, { messages: plain, digests, meant });
  let from = 0;
  let isAsSent = true;
  const turns = path.map((turn): RecalledTurn => {
    const to = from + turn.given.length;
    const own = digests.slice(from, to);
    const sent = plain.slice(from, to);
    from = to;
    const isRewritten = own.some((digest, n) => digest !== turn.given[n]);
    isAsSent &&= !isRewritten;
    const placement = placementNow(turn, plain, to, isAsSent, inResult);
    return { turn, messages: sent, digests: own, placement, isRestated: isRewritten || placement !== turn.placement };
  });
  const first = turns.length > 0 && input.keepsInstructions === true ? conversation.instructions : null;
  const changes = first && changedInstructions(first, instructions);
  const ownHead = digested(instructions);
  const rest = { messages: plain.slice(from), digests: digests.slice(from), meant: meant.slice(from) };
  return {
    head: first !== null && changes !== null ? digested(first) : ownHead,
    ownHead,
    changes,
    conversation,
    turns,
    rest,
    placement: newPlacement(turns, plain, inResult),
    stripped,
    diverged: continued.childrenOf(path.at(-1)?.id ?? null).length > 0,
    messages,
  };
}

/** Ends a history before the first turn that gives a text which no longer holds and has no successor, as forgetting does. The messages stay. */
export function withoutEnded(register: BlockRegister, history: RecalledHistory): RecalledHistory {
  const { turns, rest } = history;
  const kept = standingInjections(
    turns.map(({ turn }) => turn),
    DROPS_NOTHING,
  );
  const isOver = (label: Label) => register.successor(label) === WITHDRAWN;
  const at = kept.findIndex((injection) => [...labelsIn(injection)].some(isOver));
  if (at < 0) return history;
  const after = turns.slice(at);
  // Without a later fresh start, sections before it are given again.
  return withoutEnded(register, {
    ...history,
    turns: turns.slice(0, at),
    rest: {
      messages: [...after.flatMap(({ messages }) => messages), ...rest.messages],
      digests: [...after.flatMap(({ digests }) => digests), ...rest.digests],
      meant: [...after.flatMap(({ turn }) => turn.meant), ...rest.meant],
    },
    endsEarly: true,
  });
}

function digested(messages: readonly ChatMessage[]): DigestedMessages {
  return { messages, digests: messages.map(messageDigest) };
}

/** The current memories that earlier turns gave, the newest last: what the conversation takes for true. Pure. */
export function standingMemories(
  { register }: { readonly register: BlockRegister },
  input: HistoryInput,
): readonly MemoryId[] {
  const turns = recallHistory(input).turns.map(({ turn }) => turn);
  const { given, replaced } = standingOf(standingInjections(turns, DROPS_NOTHING));
  const labels = [...given].filter((label) => !replaced.has(label)).sort((a, b) => a - b);
  return [...new Set(labels.flatMap((label) => register.foundWith(label)))];
}

/** A message of its own moves into the tool result if the engine does not accept it, else it takes the client's changed form. */
function placementNow(
  { placement, injection, given }: Turn,
  plain: readonly ChatMessage[],
  end: number,
  isAsSent: boolean,
  inResult: boolean,
): SectionPlacement {
  // The head of an epoch follows no message of its own.
  if (!isOwnMessage(placement) || isEmptyInjection(injection) || given.length === 0) return placement;
  if (inResult) return "in-tool-result";
  return isAsSent ? placement : ownMessageBehind(plain, end);
}

function newPlacement(
  turns: readonly RecalledTurn[],
  plain: readonly ChatMessage[],
  inResult: boolean,
): SectionPlacement {
  if (plain.at(-1)?.role === "user") return "in-question";
  const earlier = turns.findLast(({ placement }) => placement !== "in-question")?.placement;
  return inResult || earlier === "in-tool-result" ? "in-tool-result" : ownMessageBehind(plain);
}

interface PathStep {
  readonly turn: Turn;
  readonly after: PathStep | null;
  readonly covered: number;
}

/** The longest path of turns that a history follows. The first differing turn breaks ties: the longer one, the same bytes, the newer. */
function followedPath(conversation: Conversation, history: MeantMessages): Turn[] {
  let best: PathStep | null = null;
  const open: PathStep[] = stepsAfter(conversation, null, history);
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    if (step.covered > (best?.covered ?? 0)) best = step;
    append(open, stepsAfter(conversation, step, history));
  }
  const path: Turn[] = [];
  for (let step: PathStep | null = best; step !== null; step = step.after) path.push(step.turn);
  return path.reverse();
}

/** The turns that continue a history from here, the preferred one last. */
function stepsAfter(conversation: Conversation, after: PathStep | null, history: MeantMessages): PathStep[] {
  const at = after?.covered ?? 0;
  const steps: PathStep[] = [];
  for (const turn of conversation.childrenOf(after?.turn.id ?? null))
    if (continuesByMeaning(turn, history, at)) steps.push({ turn, after, covered: at + turn.given.length });
  if (steps.length > 1) {
    const exact = new Set(steps.filter(({ turn }) => continuesByBytes(turn, history, at)));
    steps.sort((a, b) => a.covered - b.covered || Number(exact.has(a)) - Number(exact.has(b)) || a.turn.id - b.turn.id);
  }
  return steps;
}

/** Whether the history has a turn's messages at `at`, by meaning, and more after them. */
function continuesByMeaning({ given, meant }: Turn, history: MeantMessages, at: number): boolean {
  if (at + given.length >= history.digests.length) return false;
  for (let i = 0; i < given.length; i++)
    if (history.digests[at + i] !== given[i] && history.meant[at + i] !== meant[i]) return false;
  return true;
}

function continuesByBytes({ given }: Turn, { digests }: MeantMessages, at: number): boolean {
  return given.every((digest, i) => digests[at + i] === digest);
}

export function splitAtAnchor(
  { messages, digests }: DigestedMessages,
  placement: SectionPlacement,
): { readonly answer: DigestedMessages; readonly question: DigestedMessages } {
  const split = messages.length - (placement === "in-question" ? 1 : 0);
  return {
    answer: { messages: messages.slice(0, split), digests: digests.slice(0, split) },
    question: { messages: messages.slice(split), digests: digests.slice(split) },
  };
}
