/*
 * History: a client's plain messages, recognised as a path of its conversation's turns.
 */

import type { BlockRegister } from "../blocks/block-register.js";
import type { DigestedMessages } from "../prompt/prompt.js";
import {
  isEmptyInjection,
  isOwnMessage,
  ownMessageBehind,
  type SectionPlacement,
  stripSection,
} from "../prompt/section.js";
import { append } from "../text/collections.js";
import { type ConversationId, type Digest, digestOf, type MemoryId } from "../text/ids.js";
import { type ChatMessage, instructionsAtHead, meaningDigest, messageDigest } from "../text/message.js";
import { Conversation, DROPS_NOTHING, standingInjections, standingOf, type Turn } from "./conversation.js";

/** The part of a request that says what it continues. */
export interface HistoryInput {
  /** The conversation with its stored turns; null for the `single` layout. */
  readonly conversation: { readonly id: ConversationId; readonly turns: Conversation } | null;
  /**
   * Instructions, history and, last, the new question or tool result. Plain: without injected sections, or with sections that `isOurs`
   * recognises.
   */
  readonly messages: readonly ChatMessage[];
  /** Whether memories go into tool results. Default: as in the conversation's earlier turns, else in a message of their own. */
  readonly inResult?: boolean | undefined;
  /** Whether memprefix sent a section with this digest to this scope. */
  readonly isOurs: (section: Digest) => boolean;
  /** What {@link recallHistory} gave for this very input; null: not asked yet. Not used once `messages` are others. */
  readonly recalled?: RecalledHistory | null | undefined;
}

/** A turn that a history continues. */
export interface RecalledTurn {
  readonly turn: Turn;
  /** The client's messages of this turn as sent now. */
  readonly messages: readonly ChatMessage[];
  readonly digests: readonly Digest[];
  /** Where its section goes now. */
  readonly placement: SectionPlacement;
  /** Whether its bytes in this prompt differ from those sent before, with the same meaning. */
  readonly isRestated: boolean;
}

/** Plain messages with digests of their bytes and of their meanings. */
export interface MeantMessages extends DigestedMessages {
  readonly meant: readonly Digest[];
}

/** Everything before a new turn: the instructions, the turns recognised in the history, and the client's new messages. */
export interface RecalledHistory {
  /** The instructions at the head of the prompt. */
  readonly head: DigestedMessages;
  readonly conversation: Conversation;
  /** The turns that this history continues, first to last; their injections are replayed. */
  readonly turns: readonly RecalledTurn[];
  /** Plain messages after those turns: the new ones, and everything after an edit or a truncation. The last one is the new turn's. */
  readonly rest: MeantMessages;
  /** Where the new turn's section goes. */
  readonly placement: SectionPlacement;
  /** Number of messages whose injected section was removed. */
  readonly stripped: number;
  /** Whether the conversation has turns that this history does not continue: it was edited, regenerated or truncated. */
  readonly diverged: boolean;
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
 * Matches a plain history against a conversation's turns, by the meaning of its messages. Sections that clients send back are removed
 * first. Among several matching branches the one that covers most of the history wins. The last message never matches: it is new. Pure.
 *
 * @param messages in place of the request's
 * @param continues false: the request begins afresh, whatever it could continue
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
  // A prompt needs a last message, even if it is only a section of memprefix's sent back.
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
  const rest = { messages: plain.slice(from), digests: digests.slice(from), meant: meant.slice(from) };
  return {
    head: { messages: instructions, digests: instructions.map(messageDigest) },
    conversation,
    turns,
    rest,
    placement: newPlacement(turns, plain, inResult),
    stripped,
    diverged: continued.childrenOf(path.at(-1)?.id ?? null).length > 0,
    messages,
  };
}

/**
 * The memories of a source whose current text earlier turns of a conversation gave, the newest last: what the conversation takes for true
 * of what searches found. Pure.
 */
export function standingMemories(
  { register }: { readonly register: BlockRegister },
  input: HistoryInput,
): readonly MemoryId[] {
  const turns = recallHistory(input).turns.map(({ turn }) => turn);
  const { given, replaced } = standingOf(standingInjections(turns, DROPS_NOTHING));
  const labels = [...given].filter((label) => !replaced.has(label)).sort((a, b) => a - b);
  return [...new Set(labels.flatMap((label) => register.foundWith(label)))];
}

/**
 * Where a turn's section goes now. A message of its own moves into the tool result if the engine does not accept such messages. Once the
 * client changed the form of a message of the history, the section takes the form of the client's messages.
 *
 * @param end number of the client's plain messages up to the turn's end
 */
function placementNow(
  { placement, injection, given }: Turn,
  plain: readonly ChatMessage[],
  end: number,
  isAsSent: boolean,
  inResult: boolean,
): SectionPlacement {
  // The head of an epoch is after no message of its own.
  if (!isOwnMessage(placement) || isEmptyInjection(injection) || given.length === 0) return placement;
  if (inResult) return "in-tool-result";
  return isAsSent ? placement : ownMessageBehind(plain, end);
}

/** Where the section of the turn that ends with the last message goes, after turns that these messages begin with. */
function newPlacement(
  turns: readonly RecalledTurn[],
  plain: readonly ChatMessage[],
  inResult: boolean,
): SectionPlacement {
  if (plain.at(-1)?.role === "user") return "in-question";
  const earlier = turns.findLast(({ placement }) => placement !== "in-question")?.placement;
  return inResult || earlier === "in-tool-result" ? "in-tool-result" : ownMessageBehind(plain);
}

/** A matching turn on a path. */
interface PathStep {
  readonly turn: Turn;
  readonly after: PathStep | null;
  /** Messages that the path covers up to its end. */
  readonly covered: number;
}

/**
 * The longest path of turns from the conversation's start that a history follows. Ties are broken at the first turn that differs: the
 * longer turn, then the one with the same bytes, then the newer.
 */
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

/** The turns with which a history continues from here, the preferred one last. */
function stepsAfter(conversation: Conversation, after: PathStep | null, history: MeantMessages): PathStep[] {
  const at = after?.covered ?? 0;
  const steps: PathStep[] = [];
  for (const turn of conversation.childrenOf(after?.turn.id ?? null))
    if (continuesByMeaning(turn, history, at)) steps.push({ turn, after, covered: at + turn.given.length });
  // Usually there is only one.
  if (steps.length > 1) {
    const exact = new Set(steps.filter(({ turn }) => continuesByBytes(turn, history, at)));
    steps.sort((a, b) => a.covered - b.covered || Number(exact.has(a)) - Number(exact.has(b)) || a.turn.id - b.turn.id);
  }
  return steps;
}

/** Whether the history continues at `at` with a turn's messages, by meaning, and has messages after them. */
function continuesByMeaning({ given, meant }: Turn, history: MeantMessages, at: number): boolean {
  if (at + given.length >= history.digests.length) return false;
  for (let i = 0; i < given.length; i++)
    if (history.digests[at + i] !== given[i] && history.meant[at + i] !== meant[i]) return false;
  return true;
}

/** Whether it continues with the same bytes. */
function continuesByBytes({ given }: Turn, { digests }: MeantMessages, at: number): boolean {
  return given.every((digest, i) => digests[at + i] === digest);
}

/** Splits a turn's plain messages at the place of its section. */
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
