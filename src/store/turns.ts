import {
  type ChatMessage,
  type ConversationId,
  type Digest,
  type KeyedTurn,
  messageKey,
  type SentAfter,
  type SpokenTurn,
  type Turn,
  type TurnId,
} from "../core/index.js";
import { type Database, type SqlValue, type Statement, sql } from "./database.js";
import { decodedJson, decodeTurn, encodeTurn, storable, type TurnColumns } from "./rows.js";
import type { ComposeRecord, Store } from "./store.js";

/** For a message of no conversation. */
const NO_CONVERSATION = "";

const COLUMNS = `t.id, t.conversation_id as "conversationId", t.head, t.turn`;

/** Loaded turns of a conversation, besides its newest epoch: a client may return to a branch that it left. */
const MOST_TURNS = 1_000;

/** Prefix of the key of instructions in `messages`; many turns may share them. */
export const HEAD = "head ";
/** A condition: the row of `messages` has no instructions. */
export const NO_HEAD = `key not like '${HEAD}%'`;

/** Removes what no turn has any more: instructions, and messages of single prompts. */
export function unusedMessages(scopeId: number): Statement[] {
  const heads = `key like '${HEAD}%' and key not in (select '${HEAD}' || t.head from turns t where t.scope_id = $1)`;
  const singles = `${NO_HEAD} and turn_id not in (select t.id from turns t where t.scope_id = $1)`;
  const unused = "delete from messages where scope_id = $1 and conversation_id = ''";
  return [heads, singles].map((condition) => sql(`${unused} and ${condition}`, scopeId));
}

const KEEP_MESSAGE = `insert into messages (scope_id, conversation_id, key, turn_id, message) values ($1, $2, $3, $4, $5)
  on conflict (scope_id, conversation_id, key) do nothing`;
const KEEP_TURN = `insert into turns (scope_id, id, conversation_id, at, head, section, sections, turn)
  values ($1, $2, $3, $4, $5, $6, $7, $8)`;
const KEEP_CONVERSATION = `insert into conversations (scope_id, id, used_at, opening, sent_after)
  values ($1, $2, $3, $4, $5)
  on conflict (scope_id, id) do update set used_at = excluded.used_at, forgotten_at = null,
  sent_after = coalesce(excluded.sent_after, conversations.sent_after)`;

export function turnStatements(scopeId: number, { composition, section, sentAfter, at }: ComposeRecord): Statement[] {
  const { turn, given, restated, head, sections } = composition;
  const statements: Statement[] = [];
  const keep = (text: string, ...values: SqlValue[]) => statements.push(sql(text, scopeId, ...values));
  const after = sentAfter && JSON.stringify(sentAfter);
  const [opening = null] = turn.meant;
  if (turn.conversationId !== null) keep(KEEP_CONVERSATION, turn.conversationId, at, opening, after);
  if (head.length > 0) keep(KEEP_MESSAGE, NO_CONVERSATION, HEAD + turn.head, turn.id, JSON.stringify(head));
  for (const said of [...restated, { turn, given }]) {
    const isOwn = said.turn === turn;
    const conversation = said.turn.conversationId;
    const keys = said.given.map((message, place) => messageKey(message, place, said.turn));
    for (const [place, key] of keys.entries())
      keep(KEEP_MESSAGE, conversation ?? NO_CONVERSATION, key, said.turn.id, JSON.stringify(said.given[place]));
    const known = isOwn && sections.length > 0 ? JSON.stringify(sections) : null;
    const shown = isOwn && section !== null ? storable(section) : null;
    keep(KEEP_TURN, said.turn.id, conversation, at, said.turn.head, shown, known, encodeTurn(said.turn, keys));
  }
  return statements;
}

/** Reads turns of one scope, each once. Use one per query. */
export class TurnReading {
  readonly #turns = new Map<TurnId, KeyedTurn>();

  constructor(
    private readonly database: Database,
    private readonly scopeId: number,
  ) {}

  async turn(id: TurnId): Promise<Turn | null> {
    if (!this.#turns.has(id)) await this.#read("t.id = $2", [id]);
    return this.#turns.get(id)?.turn ?? null;
  }

  newest(id: ConversationId, most: number): Promise<Turn[]> {
    return this.#read("t.conversation_id = $2", [id], `order by t.id desc limit ${most}`);
  }

  /** A turn and those that it continues, first to last; null if one of them is gone. */
  async pathTo(newest: Turn): Promise<readonly Turn[] | null> {
    const { conversationId, epoch, id } = newest;
    if (conversationId !== null && epoch < id)
      await this.#read("t.conversation_id = $2 and t.id between $3 and $4", [conversationId, epoch, id]);
    const path: Turn[] = [newest];
    for (let { parent } = newest; parent !== null; ) {
      const turn = await this.turn(parent);
      if (turn === null) return null;
      path.push(turn);
      parent = turn.parent;
    }
    return path.reverse();
  }

  /** The turns of a path with the messages that each added; null if a message is gone. */
  async said(path: readonly Turn[]): Promise<readonly SpokenTurn[] | null> {
    const keys = path.map(({ id }) => this.#turns.get(id)?.keys ?? []);
    const conversation = path.at(-1)?.conversationId ?? NO_CONVERSATION;
    const known = await this.#messages(conversation, [...new Set(keys.flat())]);
    const said = path.map((turn, at) => ({ turn, given: (keys[at] ?? []).map((key) => known.get(key)) }));
    return said.some(({ given }) => given.includes(undefined)) ? null : (said as SpokenTurn[]);
  }

  async head({ head }: Turn): Promise<readonly ChatMessage[]> {
    const key = HEAD + head;
    return ((await this.#messages(NO_CONVERSATION, [key])).get(key) as readonly ChatMessage[] | undefined) ?? [];
  }

  async #read(where: string, values: readonly SqlValue[], order = ""): Promise<Turn[]> {
    const text = `select ${COLUMNS} from turns t where t.scope_id = $1 and ${where} ${order}`;
    const rows = await this.database.read<TurnColumns>(text, [this.scopeId, ...values]);
    return rows.map((row) => {
      const read = decodeTurn(row);
      this.#turns.set(read.turn.id, read);
      return read.turn;
    });
  }

  /** Parsed; missing ones are left out. */
  async #messages(conversation: string, keys: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
    if (keys.length === 0) return new Map();
    const text = `select key, message from messages where scope_id = $1 and conversation_id = $2 and key ${this.database.isAmong("$3")}`;
    const values = [this.scopeId, conversation, JSON.stringify(keys)];
    const rows = await this.database.read<{ key: string; message: string }>(text, values);
    return new Map(rows.map(({ key, message }) => [key, decodedJson<unknown>("a message", message)]));
  }
}

export function turnsIn(database: Database) {
  const { read } = database;
  return {
    async loadConversation(scopeId, id) {
      const reading = new TurnReading(database, scopeId);
      const own = `select forgotten_at as "forgottenAt", sent_after as "sentAfter" from conversations
        where scope_id = $1 and id = $2`;
      const [newest, [row]] = await Promise.all([
        reading.newest(id, MOST_TURNS),
        read<{ forgottenAt: number | null; sentAfter: string | null }>(own, [scopeId, id]),
      ]);
      const { epoch = 0 } = newest[0] ?? {};
      const instructions = newest[0] === undefined ? null : await reading.head(newest[0]);
      const isCut = (row?.forgottenAt ?? null) !== null;
      const sentAfter = row?.sentAfter == null ? null : decodedJson<SentAfter>("a conversation's tools", row.sentAfter);
      const oldest = newest.at(-1)?.id ?? 0;
      if (newest.length < MOST_TURNS || oldest <= epoch)
        return { turns: newest.reverse(), isCut, sentAfter, instructions };
      const all = await reading.newest(id, Number.MAX_SAFE_INTEGER);
      return { turns: all.filter((turn) => turn.id >= epoch).reverse(), isCut, sentAfter, instructions };
    },

    async conversationsWith(scopeId, opening, most) {
      const text = `select id from conversations where scope_id = $1 and opening = $2 order by used_at desc, id limit ${most}`;
      return (await read<{ id: ConversationId }>(text, [scopeId, opening])).map(({ id }) => id);
    },

    /** Follows the newest turn's parents, so it leaves out abandoned branches. */
    async findHistory(scopeId, id) {
      const reading = new TurnReading(database, scopeId);
      const [newest] = await reading.newest(id, 1);
      if (newest === undefined) return null;
      const path = await reading.pathTo(newest);
      const [turns, head] = await Promise.all([path && reading.said(path), reading.head(newest)]);
      if (turns === null) return null;
      // A turn that was only restated was not sent.
      const sent = turns.filter(({ turn }) => turn.promptTokens > 0);
      return {
        head,
        newest: turns.at(-1)?.given.length ?? 0,
        hasOwnHead: turns[0]?.given.length === 0,
        messages: turns.flatMap(({ given }) => given),
        prompts: sent.map(({ turn }) => ({ total: turn.promptTokens, computed: turn.computedTokens })),
        behind: turns.findLast(({ turn }) => turn.behind !== null)?.turn.behind ?? null,
      };
    },

    async knownSections(scopeId, sections) {
      if (sections.length === 0) return [];
      // All lists at once: an index would cost every turn more than this costs the few clients that send sections back.
      const text = "select sections from turns where scope_id = $1 and sections is not null";
      const rows = await read<{ sections: string }>(text, [scopeId]);
      const known = new Set(rows.flatMap((row) => decodedJson<readonly Digest[]>("sections", row.sections)));
      return sections.filter((digest) => known.has(digest));
    },
  } satisfies Partial<Store>;
}
