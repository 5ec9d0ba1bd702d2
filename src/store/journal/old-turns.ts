import type { NodeId, TurnId } from "../../core/index.js";
import { append } from "../../core/text/lists.js";
import type { ExpiredTurns, MessageId, NamingTurn, ScannedTurns, ScopesFound } from "../api/store.js";
import { listInPages } from "./body-reading.js";
import { type RecordKey, WITH_TURNS } from "./journal-database.js";
import type { JournalParts } from "./journal-parts.js";
import { requestsNamed } from "./request-reading.js";
import { SharedMessage } from "./shared-messages.js";
import { TurnReading, type TurnRecord } from "./turn-reading.js";

/** Records of a scan that are read at once. */
const SCANNED_AT_ONCE = 200;

/** See `Store.scopesWithOldTurns`. */
export async function findScopesWithOldTurns(parts: JournalParts, before: number, after: number): Promise<ScopesFound> {
  const { scopes, next } = await parts.database.writtenBefore(before, after);
  const found: ScopesFound["scopes"][number][] = [];
  // Old turns of an active conversation stay; a scope that has only those is left out, so that it is not scanned each time.
  for (const { scopeId, scope } of scopes) if (await hasExpired(parts, scopeId, before)) found.push(scope);
  return { scopes: found, next };
}

async function hasExpired({ database }: JournalParts, scopeId: number, before: number): Promise<boolean> {
  const active = new Set<number>();
  for await (const keys of listInPages(database, scopeId, { kinds: WITH_TURNS, newestFirst: true }))
    for (const { conversation, at } of keys) {
      if (at < before && (conversation === null || !active.has(conversation))) return true;
      if (conversation !== null) active.add(conversation);
    }
  return false;
}

/** Reads which of a scope's turns were not used since a time. Records are given whole, as they are removed whole. */
export class OldTurns {
  readonly #reading: TurnReading;
  /** When conversations were used last. */
  readonly #lastUse = new Map<number, number>();

  constructor(
    private readonly parts: JournalParts,
    private readonly scopeId: number,
    private readonly before: number,
  ) {
    this.#reading = new TurnReading(parts, scopeId);
  }

  /** See `Store.scanTurns`. At least `most` turns where there are so many, as records are given whole. */
  async scan(after: TurnId | 0, most: number): Promise<ScannedTurns> {
    const expired: NamingTurn[] = [];
    const remaining: NamingTurn[] = [];
    let last: TurnId | null = null;
    for await (const keys of this.#keysAfter(after, Math.min(most, SCANNED_AT_ONCE))) {
      for (const record of await this.#reading.recordsOf(keys)) {
        const list = (await this.#isOld(record.key)) ? expired : remaining;
        for (const turn of namingTurns(record)) if (turn.id > after) list.push(turn);
        last = record.turns.at(-1)?.turn.id ?? last;
        if (expired.length + remaining.length >= most) return { expired, remaining, next: last };
      }
    }
    return { expired, remaining, next: null };
  }

  /** See `Store.findExpired`. */
  async among(turns: readonly TurnId[]): Promise<ExpiredTurns> {
    const expired: NamingTurn[] = [];
    const old = new Map<number, RecordKey>();
    const keys = await this.parts.database.withTurns(this.scopeId, turns);
    for (const record of await this.#reading.recordsOf(keys)) {
      if (!(await this.#isOld(record.key))) continue;
      for (const turn of namingTurns(record)) expired.push(turn);
      old.set(record.key.seq, record.key);
    }
    const ids = [...old.values()].flatMap(({ requestId }) => requestId ?? []);
    const named = await requestsNamed(this.parts.database, this.scopeId, ids);
    const live = named
      .filter(({ composed, isEvicted }) => !isEvicted && old.has(composed.seq))
      .map(({ composed: { leaf, turn } }) => ({ leaf: leaf as NodeId, turn: turn as TurnId }));
    return { expired, live };
  }

  /** Keys of the records with turns after one, in order. */
  async *#keysAfter(turn: TurnId | 0, most: number): AsyncGenerator<readonly RecordKey[], void, undefined> {
    const { database } = this.parts;
    const [own] = turn === 0 ? [] : await database.withTurns(this.scopeId, [turn]);
    if (turn === 0 || own !== undefined) {
      const after = own === undefined ? 0 : own.n - (own.turn > turn ? 1 : 0);
      yield* listInPages(database, this.scopeId, { kinds: WITH_TURNS, after }, most);
      return;
    }
    // The turn is gone, as its records were removed since: what came after it is new, and little.
    const newer: RecordKey[] = [];
    for await (const keys of listInPages(database, this.scopeId, { kinds: WITH_TURNS, newestFirst: true }, most)) {
      const after = keys.filter((key) => key.turn > turn);
      append(newer, after);
      if (after.length < keys.length) break;
    }
    yield newer.reverse();
  }

  /** A conversation's turns are used together. */
  async #isOld({ conversation, at }: RecordKey): Promise<boolean> {
    if (conversation === null) return at < this.before;
    const known = this.#lastUse.get(conversation);
    if (known !== undefined) return known < this.before;
    const filter = { kinds: WITH_TURNS, conversation, newestFirst: true, most: 1 };
    const [newest] = await this.parts.database.list(this.scopeId, filter);
    const lastUse = newest?.at ?? at;
    this.#lastUse.set(conversation, lastUse);
    return lastUse < this.before;
  }
}

function namingTurns({ turns }: TurnRecord): readonly NamingTurn[] {
  return turns.map(({ turn: { id, conversationId, injection, retention, requested, head }, given }) => {
    // Other messages stand in the turn's record, and go with it.
    const messages = given.flatMap((message) =>
      message instanceof SharedMessage ? (message.key as string as MessageId) : [],
    );
    return { id, conversationId, injection, retention, requested, head, messages };
  });
}
