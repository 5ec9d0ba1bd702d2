import { type ChatMessage, type Digest, digestOf, isPlainMessage, messageDigest, type Turn } from "../../core/index.js";
import { DamagedRecordError } from "./damaged-record.js";

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
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // The parser's message quotes the text.
    throw new DamagedRecordError("a shared row: not valid JSON");
  }
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
