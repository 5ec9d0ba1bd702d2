import { z } from "zod";
import {
  type ChatMessage,
  type ConversationId,
  type Digest,
  type FixedRetention,
  type Label,
  meaningDigest,
  messageDigest,
  type SectionPlacement,
  type Turn,
  type TurnId,
} from "../../core/index.js";
import { type DigestSeal, type SealedDigest, sealedDigest } from "../database/digest-seal.js";
import { NumberedNames } from "./numbered-names.js";
import { packedInjection, packInjection, unpackInjection } from "./packed-injection.js";
import { wholeNumbers } from "./row-shapes.js";

/** A turn with the plain messages that it added. */
export interface SaidTurn {
  /** `given` and `meant` have the digests of all its messages, erased ones included. */
  readonly turn: Turn;
  /** Null for each that was erased. */
  readonly given: readonly (ChatMessage | null)[];
}

const PLACEMENTS = new NumberedNames<SectionPlacement>({
  "in-question": 0,
  "after-tool-result": 1,
  "in-tool-result": 2,
  "after-tool-result-as-parts": 3,
});
const RETENTIONS = new NumberedNames<FixedRetention>({ keep: 0, volatile: 1, ephemeral: 2 });

const id = z.int();
const tokens = z.number();
const message = z.object({ role: z.string() }) as unknown as z.ZodType<ChatMessage>;
/** A message, or its digests and it, where they cannot be computed from it: an erased one is null. 0: it means what it is. */
const packedMessage = z.union([
  message,
  z.tuple([message.nullable(), sealedDigest, z.union([z.literal(0), sealedDigest])]),
]);
type PackedMessage = z.output<typeof packedMessage>;

/** The shape of a turn as it is stored. */
export const packedTurn = z.tuple([
  // Its id, its parent's, and its epoch's.
  id,
  id.nullable(),
  id,
  z.string().nullable(),
  PLACEMENTS.shape,
  RETENTIONS.shape,
  // Whether it is a fresh start.
  z.literal([0, 1]),
  // Tokens of the prompt, and those that were computed.
  tokens,
  tokens,
  // Digests: head, prompt, anchor, and what was left out before its messages.
  sealedDigest,
  sealedDigest,
  sealedDigest,
  sealedDigest.nullable(),
  packedInjection,
  // Labels of the retrieved blocks.
  wholeNumbers,
  z.array(packedMessage),
]);
export type PackedTurn = z.output<typeof packedTurn>;

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

function packMessage(message: ChatMessage | null, given: Digest, meant: Digest, digests: DigestSeal): PackedMessage {
  const isComputed = message !== null && messageDigest(message) === given && meaningDigest(message, given) === meant;
  return isComputed ? message : [message, digests.seal(given), given === meant ? 0 : digests.seal(meant)];
}

function unpackMessage(packed: PackedMessage, digests: DigestSeal) {
  if (!isWithDigests(packed)) {
    const given = messageDigest(packed);
    return { message: packed, given, meant: meaningDigest(packed, given) };
  }
  const [message, sealed, meant] = packed;
  const given = digests.open(sealed);
  return { message, given, meant: meant === 0 ? given : digests.open(meant) };
}

function isWithDigests(packed: PackedMessage): packed is [ChatMessage | null, SealedDigest, 0 | SealedDigest] {
  return Array.isArray(packed);
}
