import {
  type ChatMessage,
  type ConversationId,
  type Digest,
  digestOfMessage,
  type FixedRetention,
  type Label,
  meaningDigest,
  messageDigest,
  type SectionPlacement,
  type Turn,
  type TurnId,
} from "../../core/index.js";
import type { DigestSeal, SealedDigest } from "../database/digest-seal.js";
import { NumberedNames } from "./numbered-names.js";
import { type PackedInjection, packInjection, unpackInjection } from "./packed-injection.js";
import { type RecordedMessage, SharedMessage } from "./shared-message.js";

/** A turn with the plain messages that it added. */
export interface SaidTurn {
  /** `given` and `meant` have the digests of all its messages, erased and shared ones included. */
  readonly turn: Turn;
  readonly given: readonly RecordedMessage[];
}

const PLACEMENTS = new NumberedNames<SectionPlacement>({
  "in-question": 0,
  "after-tool-result": 1,
  "in-tool-result": 2,
  "after-tool-result-as-parts": 3,
});
const RETENTIONS = new NumberedNames<FixedRetention>({ keep: 0, volatile: 1, ephemeral: 2 });

/**
 * - A message.
 * - Its digests and it, where they cannot be computed from it: an erased one is null. 0: it means what it is.
 * - The digest of a shared one, which is also its row's key, and of its meaning.
 * - The key of a shared one, its digest, and that of its meaning; 0 for each that is the one before.
 */
type PackedMessage =
  | ChatMessage
  | readonly [ChatMessage | null, SealedDigest, 0 | SealedDigest]
  | SealedDigest
  | readonly [SealedDigest, 0 | SealedDigest, 0 | SealedDigest];

/** A turn as it is stored: */
export type PackedTurn = readonly [
  // its id, its parent's, its epoch's; its conversation;
  ...[number, number | null, number, string | null],
  // numbers of its placement and its retention; whether it is a fresh start;
  ...[number, number, 0 | 1],
  // tokens of the prompt, and those that were computed;
  ...[number, number],
  // digests: head, prompt, anchor, and what was left out before its messages;
  ...[SealedDigest, SealedDigest, SealedDigest, SealedDigest | null],
  // what it injected; labels of the retrieved blocks; what it was given.
  ...[PackedInjection, readonly Label[], readonly PackedMessage[]],
];

export function packTurn({ turn, given }: SaidTurn, digests: DigestSeal): PackedTurn {
  if (given.length !== turn.given.length || given.length !== turn.meant.length)
    throw new Error("as many digests as messages");
  return [
    turn.id,
    turn.parent,
    turn.epoch,
    turn.conversationId,
    PLACEMENTS.numberOf(turn.placement),
    RETENTIONS.numberOf(turn.retention),
    turn.freshStart ? 1 : 0,
    turn.promptTokens,
    turn.computedTokens,
    digests.seal(turn.head),
    digests.seal(turn.prompt),
    digests.seal(turn.anchor),
    turn.behind === null ? null : digests.seal(turn.behind),
    packInjection(turn.injection),
    turn.requested,
    given.map((said, at) => packMessage(said, turn.given[at] as Digest, turn.meant[at] as Digest, digests)),
  ];
}

export function unpackTurn(packed: PackedTurn, digests: DigestSeal): SaidTurn {
  const [id, parent, epoch, conversationId, placement, retention, freshStart, promptTokens, computedTokens, ...rest] =
    packed;
  const [head, prompt, anchor, behind, injection, requested, messages] = rest;
  const said = messages.map((message) => unpackMessage(message, digests));
  const turn: Turn = {
    id: id as TurnId,
    conversationId: conversationId as ConversationId | null,
    parent: parent as TurnId | null,
    given: said.map(({ given }) => given),
    meant: said.map(({ meant }) => meant),
    placement: PLACEMENTS.nameOf(placement),
    injection: unpackInjection(injection),
    retention: RETENTIONS.nameOf(retention),
    freshStart: freshStart === 1,
    requested: requested as Label[],
    head: digests.open(head),
    prompt: digests.open(prompt),
    anchor: digests.open(anchor),
    promptTokens,
    computedTokens,
    epoch: epoch as TurnId,
    behind: behind === null ? null : digests.open(behind),
  };
  return { turn, given: said.map(({ message }) => message) };
}

function packMessage(message: RecordedMessage, given: Digest, meant: Digest, digests: DigestSeal): PackedMessage {
  const meaning = given === meant ? 0 : digests.seal(meant);
  if (message instanceof SharedMessage) {
    const key = digests.seal(message.key);
    if (message.key === given) return meaning === 0 ? key : [key, 0, meaning];
    return [key, digests.seal(given), meaning];
  }
  const isComputed = message !== null && messageDigest(message) === given && meaningDigest(message, given) === meant;
  return isComputed ? message : [message, digests.seal(given), meaning];
}

/** What a turn has of a message. */
interface UnpackedMessage {
  readonly message: RecordedMessage;
  readonly given: Digest;
  readonly meant: Digest;
}

function unpackMessage(packed: PackedMessage, digests: DigestSeal): UnpackedMessage {
  if (typeof packed === "string") {
    const key = digests.open(packed);
    return { message: new SharedMessage(key), given: key, meant: key };
  }
  if (!isWithDigests(packed)) {
    const given = digestOfMessage(packed);
    return { message: packed, given, meant: meaningDigest(packed, given) };
  }
  const [first, sealed, sealedMeaning] = packed;
  const message = typeof first === "string" ? new SharedMessage(digests.open(first)) : first;
  const given = sealed === 0 ? (message as SharedMessage).key : digests.open(sealed);
  return { message, given, meant: sealedMeaning === 0 ? given : digests.open(sealedMeaning) };
}

/** The forms of a message that are lists. */
type PackedWithDigests = Extract<PackedMessage, readonly [unknown, unknown, unknown]>;

function isWithDigests(packed: Exclude<PackedMessage, string>): packed is PackedWithDigests {
  return Array.isArray(packed);
}
