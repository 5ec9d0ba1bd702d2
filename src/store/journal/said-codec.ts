import {
  type Annotation,
  type ChatMessage,
  type ConversationId,
  type Digest,
  digestOf,
  digestOfMessage,
  type FixedRetention,
  hasLabels,
  type InjectedBlock,
  type Injection,
  isPlainMessage,
  type Label,
  type MemoryId,
  meaningDigest,
  messageDigest,
  type PlacedMemory,
  type Plan,
  type SectionPlacement,
  type Turn,
  type TurnId,
  type Warning,
} from "../../core/index.js";
import { parsedJson } from "../../core/text/json.js";
import type { EngineReport, StoredAnswer } from "../api/store.js";
import type { DigestSeal, SealedDigest } from "../database/digest-seal.js";

/**
 * A body of a record, or a snapshot, is not what this store writes. The message quotes nothing of it; whoever reads adds the scope and the
 * record.
 */
export class DamagedRecordError extends Error {
  override readonly name = "DamagedRecordError";
}

/** The format of snapshots, changes and what records say; the first element of each. A new one is another number, and this one stays readable. */
export const FORMAT = 1;

/**
 * Unpacks a body. Its checksum was compared when it was read, so its shape is what this store wrote: only its format is compared. Parsed
 * values are kept and not copied: messages and plans keep the order of their fields, in which they may be sent again.
 *
 * @param what names the body in errors
 */
export function unpackedBody<Packed extends readonly [typeof FORMAT, ...unknown[]], T>(
  what: string,
  text: string,
  unpack: (packed: Packed) => T,
): T {
  const value = parsedJson(text);
  if (value === undefined) throw new DamagedRecordError(`${what}: not valid JSON`);
  if (!Array.isArray(value) || value[0] !== FORMAT) throw new DamagedRecordError(`${what}: not of format ${FORMAT}`);
  try {
    return unpack(value as unknown as Packed);
  } catch {
    throw new DamagedRecordError(`${what}: not as it is written`);
  }
}

/** A name by its number in a body: its place in a list that is only appended to. Throws for a number that has no name. */
function nameOf<Name extends string>(names: readonly Name[], number: number): Name {
  const name = names[number];
  if (name === undefined) throw new RangeError(`no name has the number ${number}`);
  return name;
}

const PLACEMENTS: readonly SectionPlacement[] = [
  "in-question",
  "after-tool-result",
  "in-tool-result",
  "after-tool-result-as-parts",
];
const RETENTIONS: readonly FixedRetention[] = ["keep", "volatile", "ephemeral"];

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
type PackedTurn = readonly [
  // its id, its parent's, its epoch's; its conversation;
  ...[number, number | null, number, string | null],
  // numbers of its placement and its retention; 0, or of a fresh start one more than the turns whose sections it kept;
  ...[number, number, number],
  // tokens of the prompt, and those that were computed;
  ...[number, number],
  // digests: head, prompt, anchor, and what was left out before its messages;
  ...[SealedDigest, SealedDigest, SealedDigest, SealedDigest | null],
  // what it injected; labels of the retrieved blocks; what it was given.
  ...[PackedInjection, readonly Label[], readonly PackedMessage[]],
];

function packTurn({ turn, given }: SaidTurn, digests: DigestSeal): PackedTurn {
  if (given.length !== turn.given.length || given.length !== turn.meant.length)
    throw new Error("as many digests as messages");
  return [
    turn.id,
    turn.parent,
    turn.epoch,
    turn.conversationId,
    PLACEMENTS.indexOf(turn.placement),
    RETENTIONS.indexOf(turn.retention),
    turn.freshStart ? 1 + turn.keptTurns : 0,
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

function unpackTurn(packed: PackedTurn, digests: DigestSeal): SaidTurn {
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
    placement: nameOf(PLACEMENTS, placement),
    injection: unpackInjection(injection),
    retention: nameOf(RETENTIONS, retention),
    freshStart: freshStart > 0,
    keptTurns: Math.max(0, freshStart - 1),
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

/** A label; or a label, and the labels that it replaces. */
type PackedBlock = number | readonly [number, readonly Label[]];

/** An injection as it is stored: short arrays, as at k = 100 it is much of what a compose writes. */
interface PackedInjection {
  readonly b: readonly PackedBlock[];
  readonly a: readonly Annotation[];
  /** Whether blocks have labels. */
  readonly l?: 1;
}

const NO_LABELS: readonly Label[] = [];

function packInjection({ blocks, annotations }: Injection): PackedInjection {
  const packed = blocks.map(({ label, replaces }): PackedBlock => (replaces.length === 0 ? label : [label, replaces]));
  return { b: packed, a: annotations, ...(hasLabels({ blocks }) ? { l: 1 } : {}) };
}

function unpackInjection({ b, a, l }: PackedInjection): Injection {
  const blocks = b.map((block): InjectedBlock => {
    const [label, replaces] = typeof block === "number" ? [block, NO_LABELS] : block;
    return { label: label as Label, replaces, ...(l === 1 ? { isLabelled: true } : {}) };
  });
  return { blocks, annotations: a };
}

const MEMORY_PLACEMENTS: readonly PlacedMemory["placement"][] = [
  "cached_prefix",
  "new",
  "earlier_turn",
  "carried_over",
];

/** Label, id, placement, rank, and where it replaces some, their labels. */
type PackedMemory = readonly [number, string, number, number | null, (readonly Label[])?];

/** An answer as it is stored; its memories are short arrays, as at k = 100 they are most of what a compose writes. */
interface PackedAnswer {
  readonly m: readonly PackedMemory[];
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  readonly grounds?: NonNullable<StoredAnswer["grounds"]>;
  readonly worker?: string;
}

function packAnswer({ memories, plan, warnings, grounds, worker }: StoredAnswer): PackedAnswer {
  return {
    m: memories.map(({ label, memoryId, placement, rank, replaces }): PackedMemory => {
      const number = MEMORY_PLACEMENTS.indexOf(placement);
      return replaces.length === 0 ? [label, memoryId, number, rank] : [label, memoryId, number, rank, replaces];
    }),
    plan,
    warnings,
    ...(grounds === null ? {} : { grounds }),
    ...(worker === undefined ? {} : { worker }),
  };
}

function unpackAnswer({ m, plan, warnings, grounds, worker }: PackedAnswer): StoredAnswer {
  const memories = m.map(
    ([label, memoryId, placement, rank, replaces = []]): PlacedMemory => ({
      label: label as Label,
      memoryId: memoryId as MemoryId,
      placement: nameOf(MEMORY_PLACEMENTS, placement),
      rank,
      replaces,
    }),
  );
  return {
    memories,
    plan,
    warnings,
    grounds: grounds ?? null,
    ...(worker === undefined ? {} : { worker }),
  };
}

/** What a record of kind `composed` says; or, without a request, one of kind `said`. */
export interface ComposedRecord {
  /** Earlier turns that were restated, first to last, and then the composed one. */
  readonly turns: readonly SaidTurn[];
  /** Digests of the sections that the composed turn sent, and that later turns replay. */
  readonly sections: readonly Digest[];
  readonly request: AnsweredBody | null;
}

/** What a request asked, and what it was answered. */
export interface AnsweredBody {
  readonly body: Digest;
  readonly answer: StoredAnswer;
}

/** Digest of the request's body, and the answer; 0: no request. */
type PackedRequest = 0 | readonly [SealedDigest, PackedAnswer];
type PackedComposed = readonly [
  typeof FORMAT,
  turns: readonly PackedTurn[],
  sections: readonly SealedDigest[],
  PackedRequest,
];
type PackedReport = readonly [typeof FORMAT, EngineReport];
type PackedForgotten = readonly [typeof FORMAT, readonly SealedDigest[]];

/**
 * What records say, as text. Digests are sealed; a message's are computed again from it, unless it was erased. Text that this did not write
 * is a `DamagedRecordError`.
 */
export class SaidCodec {
  constructor(private readonly digests: DigestSeal) {}

  encodeComposed({ turns, sections, request }: ComposedRecord): string {
    const { digests } = this;
    const packed: PackedComposed = [
      FORMAT,
      turns.map((said) => packTurn(said, digests)),
      sections.map((section) => digests.seal(section)),
      request === null ? 0 : [digests.seal(request.body), packAnswer(request.answer)],
    ];
    return JSON.stringify(packed);
  }

  decodeComposed(text: string): ComposedRecord {
    return this.#composed(text, ([, turns, sections, request]) => ({
      turns: turns.map((turn) => unpackTurn(turn, this.digests)),
      sections: sections.map((section) => this.digests.open(section)),
      request: this.#request(request),
    }));
  }

  /** Only its turns. */
  decodeTurns(text: string): SaidTurn[] {
    return this.#composed(text, ([, turns]) => turns.map((turn) => unpackTurn(turn, this.digests)));
  }

  /** Only the sections of a composed request, sealed as they are. */
  sealedSections(text: string): readonly SealedDigest[] {
    return this.#composed(text, ([, , sections]) => sections);
  }

  /** What a record of kind `reported` says. */
  encodeReported(report: EngineReport): string {
    return JSON.stringify([FORMAT, report] satisfies PackedReport);
  }

  decodeReported(text: string): EngineReport {
    return unpackedBody("a report", text, ([, report]: PackedReport) => report);
  }

  /** What a record of kind `forgotten` says: digests of sections that earlier turns render to since. */
  encodeForgotten(sections: readonly Digest[]): string {
    const sealed = sections.map((section) => this.digests.seal(section));
    return JSON.stringify([FORMAT, sealed] satisfies PackedForgotten);
  }

  decodeForgotten(text: string): Digest[] {
    return this.sealedForgotten(text).map((section) => this.digests.open(section));
  }

  /** The same, sealed as they are. */
  sealedForgotten(text: string): readonly SealedDigest[] {
    return unpackedBody("a forgotten memory", text, ([, sections]: PackedForgotten) => sections);
  }

  #composed<T>(text: string, unpack: (packed: PackedComposed) => T): T {
    return unpackedBody("a composed request", text, unpack);
  }

  #request(request: PackedRequest): AnsweredBody | null {
    if (request === 0) return null;
    const [body, answer] = request;
    return { body: this.digests.open(body), answer: unpackAnswer(answer) };
  }
}

/** A turn with the plain messages that it added. */
export interface SaidTurn {
  /** `given` and `meant` have the digests of all its messages, erased and shared ones included. */
  readonly turn: Turn;
  readonly given: readonly RecordedMessage[];
}

/**
 * In a record, in place of a message that stands in a row of its own: all turns of a scope that were given it refer to that row. A row that
 * is not there was erased.
 */
export class SharedMessage {
  /** @param key see {@link sharedKey} */
  constructor(readonly key: Digest) {}
}

/** A message as a record has it; null: erased. */
export type RecordedMessage = ChatMessage | SharedMessage | null;

/**
 * The key of a message's row: equal keys, equal JSON. Of a plain message that is the digest by which turns know it. That digest leaves the
 * order of fields open, in which a message is sent again, so all others have one of their JSON. What is hashed differs in its first
 * character from what a message's digest is of (`{`) and from what that of instructions is of (a digest, or nothing).
 */
export function sharedKey(message: ChatMessage, digest = messageDigest(message)): Digest {
  return isPlain(message) ? digest : digestOf(`as given: ${JSON.stringify(message)}`);
}

/** Its row's JSON; that of instructions is a list. */
export function writeShared(message: ChatMessage): string {
  return JSON.stringify(message);
}

/** Throws `DamagedRecordError` where the row has another message than its key says. */
export function readShared(key: Digest, json: string): ChatMessage {
  const [message = null, ...others] = messagesInRow(json);
  if (message === null || others.length > 0 || sharedKey(message) !== key)
    throw new DamagedRecordError("a shared message: not what its digest says");
  return message;
}

/** The messages of a row: instructions, null for each that was erased, or one message. */
export function messagesInRow(json: string): readonly (ChatMessage | null)[] {
  const value = parsedJson(json);
  if (value === undefined) throw new DamagedRecordError("a shared row: not valid JSON");
  return (Array.isArray(value) ? value : [value]) as readonly (ChatMessage | null)[];
}

/** Whether a row is of instructions. */
export function isInstructions(json: string): boolean {
  return json.startsWith("[");
}

function isPlain(message: ChatMessage): boolean {
  const [first, second, ...others] = Object.keys(message);
  return first === "role" && second === "content" && others.length === 0 && typeof message.content === "string";
}

/*
 * Which messages of a composed prompt stand in rows of their own, and which in its record. A message that comes once costs least in the
 * record; one that comes again with every prompt, as windows and repeated histories do, is stored once and referred to.
 */

/** JSON of a message that takes no more room in a record than two digests do. */
const SHORT = 100;
/** JSON of a message for which a row more is little: it may come again, whatever it is in. */
const LONG = 8_000;
/** Most characters of JSON for one of a text, and for what is around a plain message's. */
const MOST_ESCAPED = 6;
const FRAME = 40;
/** The last messages of a turn that may be new: an answer and a question, a tool's calls and results. */
const MOST_NEW = 8;

/** A turn with the messages that it added. */
export interface GivenTurn {
  readonly turn: Turn;
  readonly given: readonly ChatMessage[];
}

/** Turns as their record has them. */
export interface SharingTurns {
  readonly turns: readonly SaidTurn[];
  /** The messages that they share, by their rows' keys. */
  readonly rows: ReadonlyMap<Digest, ChatMessage>;
}

/**
 * What came in an earlier prompt is shared, as far as turns show; what is {@link newIn new} is not, unless it is long. Short messages never
 * are.
 *
 * So a message that stays in its conversation's prompts is stored once, in the record; one that comes again in windows or histories once
 * more, in a row.
 */
export function shareMessages(restated: readonly GivenTurn[], composed: GivenTurn): SharingTurns {
  const rows = new Map<Digest, ChatMessage>();
  const share = ({ turn, given }: GivenTurn, fresh: number): SaidTurn => {
    const said = given.map((message, at) => {
      const digest = turn.given[at] as Digest;
      if (!isWorthARow(message, at >= given.length - fresh) || messageDigest(message) !== digest) return message;
      const key = sharedKey(message, digest);
      rows.set(key, message);
      return new SharedMessage(key);
    });
    return { turn, given: said };
  };
  const isGoingOn = (restated[0] ?? composed).turn.parent !== null;
  const before = restated.map((turn) => share(turn, isGoingOn ? MOST_NEW : 0));
  return { turns: [...before, share(composed, isGoingOn ? MOST_NEW : newIn(composed))], rows };
}

/** Whether a message's row is less than it would take in records; `isNew`: in one, so far. */
function isWorthARow(message: ChatMessage, isNew: boolean): boolean {
  const { content } = message;
  const most = isNew ? LONG : SHORT;
  if (typeof content === "string" && content.length > most) return true;
  if (isPlainMessage(message) && message.content.length * MOST_ESCAPED + FRAME <= most) return false;
  return JSON.stringify(message).length > most;
}

/**
 * How many of a composed turn's last messages are new. Mostly all are where it, or what is restated before it, goes on from a stored turn. One
 * that does not brings its past along: only what is after the last answer is new, and in a conversation not even that, as its client sends
 * windows, in which it comes again.
 */
function newIn({ turn, given }: GivenTurn): number {
  const answer = given.findLastIndex(({ role }) => role === "assistant");
  const asked = Math.min(answer < 0 ? 1 : Math.max(1, given.length - answer - 1), MOST_NEW);
  return turn.conversationId !== null && asked < given.length ? 0 : asked;
}
