import { type ChatMessage, type Digest, isPlainMessage, messageDigest, type Turn } from "../../core/index.js";
import type { SaidTurn } from "./said-codec.js";
import { SharedMessage, sharedKey } from "./shared-message.js";

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
 * What came in an earlier prompt is shared, as far as turns tell; what is {@link newIn new} is not, unless it is long. Short messages never
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
 * that does not brings its past along: only what is behind the last answer is new, and in a conversation not even that, as its client sends
 * windows, in which it comes again.
 */
function newIn({ turn, given }: GivenTurn): number {
  const answer = given.findLastIndex(({ role }) => role === "assistant");
  const asked = Math.min(answer < 0 ? 1 : Math.max(1, given.length - answer - 1), MOST_NEW);
  return turn.conversationId !== null && asked < given.length ? 0 : asked;
}
