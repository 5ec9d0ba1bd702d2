import {
  type ChatMessage,
  type Digest,
  type Label,
  labelsIn,
  messageDigest,
  type NodeId,
  type RequestId,
  type Scope,
  type SpokenTurn,
  type StoredPrompt,
  type Turn,
  type TurnId,
} from "../../core/index.js";
import type { AnsweredRequest, ContinuedPrompt, GivenResponses, ServedRequest } from "../api/store.js";
import { type JournalDatabase, type RecordKey, type RecordKind, WITH_TURNS } from "./journal-database.js";
import { type JournalParts, listInPages, type ReadMessages, reportIn } from "./journal-parts.js";
import { type FoundTurn, TurnReading, type TurnRecord, wholeOf } from "./turn-reading.js";

/** Kinds of records that say something of a request. */
const OF_REQUESTS: readonly RecordKind[] = ["composed", "reported", "evicted"];

/** Keys that a walk reads first; further pages are longer, as most walks end soon. */
const FIRST_PAGE = 64;

/** What a scope's records say of a request, as far as keys show. */
export interface NamedRequest {
  readonly requestId: string;
  /** Its last compose: under an id whose answer was erased another request may be composed. */
  readonly composed: RecordKey;
  readonly isEvicted: boolean;
  /** The last report since it was composed; null: none. */
  readonly reported: RecordKey | null;
}

/** The requests of some records, in the order of scopes, and of their first records within them. Keys are in order of their numbers. */
export function requestsIn(keys: readonly RecordKey[]): readonly NamedRequest[] {
  const found = new Map<string, NamedRequest>();
  for (const key of keys) {
    const { requestId, kind } = key;
    if (requestId === null) continue;
    const name = JSON.stringify([key.scopeId, requestId]);
    const request = found.get(name);
    if (kind === "composed") found.set(name, { requestId, composed: key, isEvicted: false, reported: null });
    else if (request === undefined) continue;
    else if (kind === "evicted") found.set(name, { ...request, isEvicted: true });
    else if (kind === "reported") found.set(name, { ...request, reported: key });
  }
  return [...found.values()];
}

/** Requests of one scope by their ids; each once. */
export async function requestsNamed(
  database: JournalDatabase,
  scopeId: number,
  ids: readonly string[],
): Promise<readonly NamedRequest[]> {
  return requestsIn(await database.withRequests({ scopeId }, ids));
}

/** A scope's requests, newest first. */
async function* newestRequests(
  database: JournalDatabase,
  scopeId: number,
): AsyncGenerator<NamedRequest, void, undefined> {
  const seen = new Set<string>();
  const evicted = new Set<string>();
  const reported = new Map<string, RecordKey>();
  for await (const keys of listInPages(database, scopeId, { kinds: OF_REQUESTS, newestFirst: true }, FIRST_PAGE)) {
    for (const key of keys) {
      const { requestId, kind } = key;
      // Of a request that was composed again under its id nothing is known but its turn.
      if (requestId === null || seen.has(requestId)) continue;
      if (kind === "evicted") evicted.add(requestId);
      else if (kind === "reported") {
        if (!reported.has(requestId)) reported.set(requestId, key);
      } else {
        seen.add(requestId);
        const isEvicted = evicted.has(requestId);
        yield { requestId, composed: key, isEvicted, reported: reported.get(requestId) ?? null };
      }
    }
  }
}

/** How many of a scope's last requests are searched for reports and open requests. */
const REQUESTS_LOOKED_AT = 32;
/** Ids that are looked up at once. */
const IDS_AT_ONCE = 500;

/** What a turn was given, with erased messages as they are said again; null where one of them is not. */
function saidAgain(
  { given }: Turn,
  stored: ReadMessages,
  said: ReadonlyMap<Digest, ChatMessage>,
): readonly ChatMessage[] | null {
  return wholeOf(given.map((digest, at) => stored[at] ?? said.get(digest) ?? null));
}

/** Stored requests of one scope. */
export class RequestReading {
  constructor(
    private readonly parts: JournalParts,
    private readonly scopeId: number,
  ) {}

  /** See `Store.findRequest`. */
  async answered(id: RequestId, said: readonly ChatMessage[]): Promise<AnsweredRequest | null> {
    const [named] = await requestsNamed(this.parts.database, this.scopeId, [id]);
    if (named === undefined) return null;
    const reading = this.#turns();
    const [record] = await reading.recordsOf([named.composed]);
    const own = record?.turns.at(-1);
    if (record?.request == null || own === undefined) return null;
    const path: FoundTurn[] = [];
    for await (const found of reading.upFrom(await reading.turn(own.turn.id))) {
      if (found === null) return null;
      path.push(found);
    }
    const again = new Map(said.map((message) => [messageDigest(message), message]));
    const stored = await reading.givenOf(path);
    const turns: { turn: Turn; given: readonly ChatMessage[] }[] = [];
    for (const [at, { turn }] of path.entries()) {
      const given = saidAgain(turn, stored[at] ?? [], again);
      if (given === null) return null;
      turns.push({ turn, given });
    }
    const head = await reading.head(own.turn.head);
    return head === null ? null : { ...record.request, head, turns: turns.reverse() };
  }

  /** See `Store.findServed`. */
  async served(id: RequestId): Promise<ServedRequest | null> {
    const [named] = await requestsNamed(this.parts.database, this.scopeId, [id]);
    return named === undefined ? null : this.#served(named);
  }

  /** See `Store.responsesGiven`. Each turn is read once. */
  async responsesGiven(labels: ReadonlySet<Label>): Promise<GivenResponses> {
    const { database } = this.parts;
    const responses = await database.responsesOf(this.scopeId);
    const reading = this.#turns();
    const known = new Map<TurnId, boolean>();
    const given: string[] = [];
    const others: string[] = [];
    for (let at = 0; at < responses.length; at += IDS_AT_ONCE) {
      const some = responses.slice(at, at + IDS_AT_ONCE);
      const named = await requestsNamed(
        database,
        this.scopeId,
        some.map(({ requestId }) => requestId),
      );
      const turns = new Map(named.map(({ requestId, composed }) => [requestId, composed.turn as TurnId]));
      for (const { id, requestId } of some) {
        const turn = turns.get(requestId);
        if (turn === undefined) continue;
        const isGiven = labels.size > 0 && (await isGivenUpTo(await reading.turn(turn), reading, labels, known));
        (isGiven ? given : others).push(id);
      }
    }
    return { given, others };
  }

  /** See `Store.findWorker`. */
  async workerOf(turn: TurnId): Promise<string | null> {
    const [key] = await this.parts.database.withTurns(this.scopeId, [turn]);
    if (key?.requestId == null || key.turn !== turn) return null;
    const [named] = await requestsNamed(this.parts.database, this.scopeId, [key.requestId]);
    if (named?.composed.seq !== key.seq) return null;
    const [record] = await this.#turns().recordsOf([key]);
    return record?.request?.answer.worker ?? null;
  }

  /** See `Store.findReportedBefore`. */
  async reportedBefore(turn: TurnId): Promise<ServedRequest | null> {
    for (const named of await this.#lastBefore(turn)) {
      if (named.reported === null) continue;
      const observed = await reportOf(this.parts, named.reported);
      if (observed?.cachedTokens !== undefined) return this.#served(named);
    }
    return null;
  }

  /** See `Store.underWaySince`. */
  async underWaySince(since: number): Promise<number | null> {
    let earliest: number | null = null;
    let looked = 0;
    for await (const { composed, isEvicted, reported } of newestRequests(this.parts.database, this.scopeId)) {
      if (composed.at <= since) break;
      if (++looked === REQUESTS_LOOKED_AT) return since;
      if (reported === null && !isEvicted) earliest = composed.at;
    }
    return earliest;
  }

  /** See `Store.countServedSince`. */
  async servedSince(leaf: NodeId, turn: TurnId, most: number): Promise<number> {
    let count = 0;
    for await (const { composed, isEvicted } of newestRequests(this.parts.database, this.scopeId)) {
      if (composed.turn <= turn || count >= most) break;
      if (composed.leaf === leaf && !isEvicted) count++;
    }
    return count;
  }

  /** See `Store.liveRequests`. */
  async newestLive(limit: number): Promise<readonly { requestId: RequestId; leaf: NodeId }[]> {
    const live: { requestId: RequestId; leaf: NodeId }[] = [];
    if (limit <= 0) return live;
    for await (const { requestId, composed, isEvicted } of newestRequests(this.parts.database, this.scopeId)) {
      if (isEvicted) continue;
      live.push({ requestId: requestId as RequestId, leaf: composed.leaf as NodeId });
      if (live.length >= limit) break;
    }
    return live;
  }

  /** The last requests before a turn, newest first, {@link REQUESTS_LOOKED_AT} at most. */
  async #lastBefore(turn: TurnId): Promise<readonly NamedRequest[]> {
    const [own] = await this.parts.database.withTurns(this.scopeId, [turn]);
    const found: NamedRequest[] = [];
    const filter = { kinds: ["composed"], newestFirst: true, ...(own && { before: own.n }) } as const;
    for await (const keys of listInPages(this.parts.database, this.scopeId, filter, REQUESTS_LOOKED_AT)) {
      const earlier = keys.filter((key) => key.turn < turn);
      const ids = earlier.flatMap(({ requestId }) => requestId ?? []);
      const named = new Map(
        (await requestsNamed(this.parts.database, this.scopeId, ids)).map((one) => [one.composed.seq, one]),
      );
      for (const { seq } of earlier) {
        const request = named.get(seq);
        if (request !== undefined) found.push(request);
        if (found.length === REQUESTS_LOOKED_AT) return found;
      }
    }
    return found;
  }

  async #served({ composed, isEvicted, reported }: NamedRequest): Promise<ServedRequest | null> {
    const [record] = await this.#turns().recordsOf([composed]);
    if (record?.request == null) return null;
    const { plan, grounds } = record.request.answer;
    return {
      leaf: composed.leaf as NodeId,
      turn: composed.turn as TurnId,
      at: composed.at,
      plan,
      grounds,
      evicted: isEvicted,
      observed: reported === null ? null : await reportOf(this.parts, reported),
    };
  }

  #turns(): TurnReading {
    return new TurnReading(this.parts, this.scopeId);
  }
}

/**
 * Whether a turn, or one that it continues, was given memories with some labels.
 *
 * @param known what is known of turns; what is found is added
 */
async function isGivenUpTo(
  newest: FoundTurn | null,
  reading: TurnReading,
  labels: ReadonlySet<Label>,
  known: Map<TurnId, boolean>,
): Promise<boolean> {
  const path: TurnId[] = [];
  let isGiven = false;
  for await (const found of reading.upFrom(newest)) {
    if (found === null) break;
    const { id, injection } = found.turn;
    path.push(id);
    const before = known.get(id);
    isGiven = before ?? [...labelsIn(injection)].some((label) => labels.has(label));
    if (isGiven || before !== undefined) break;
  }
  for (const id of path) known.set(id, isGiven);
  return isGiven;
}

async function reportOf(parts: JournalParts, { seq }: RecordKey): Promise<ServedRequest["observed"]> {
  const [record] = await parts.database.read([seq]);
  return record === undefined ? null : reportIn(parts, record);
}

/** See `Store.findLiveRequests`. */
export async function findLiveRequests(
  database: JournalDatabase,
  tenant: string,
  ids: readonly RequestId[],
): Promise<readonly { scope: Scope; requestId: RequestId; leaf: NodeId; turn: TurnId }[]> {
  const live: NamedRequest[] = [];
  const distinct = [...new Set(ids)];
  for (let at = 0; at < distinct.length; at += IDS_AT_ONCE) {
    const keys = await database.withRequests({ tenant }, distinct.slice(at, at + IDS_AT_ONCE));
    for (const request of requestsIn(keys)) if (!request.isEvicted) live.push(request);
  }
  const rows = await database.scopesById([...new Set(live.map(({ composed }) => composed.scopeId))]);
  const scopes = new Map(rows.map(({ scopeId, scope }) => [scopeId, scope]));
  return live.flatMap(({ requestId, composed }) => {
    const scope = scopes.get(composed.scopeId);
    if (scope === undefined) return [];
    const { leaf, turn } = composed;
    return [{ scope, requestId: requestId as RequestId, leaf: leaf as NodeId, turn: turn as TurnId }];
  });
}

/** Most records that are looked at for the prompt before one. */
const MOST_LOOKED_AT = 200;

/** Reads a request's prompt and the one that it continued; see `Store.findContinued`. */
export class PromptReading {
  /** Requests by the record of their prompt. */
  readonly #requests = new Map<number, NamedRequest>();

  constructor(
    private readonly parts: JournalParts,
    private readonly turns: TurnReading,
  ) {}

  async continuedBy(id: RequestId): Promise<ContinuedPrompt | null> {
    const [named] = await requestsNamed(this.parts.database, this.turns.scopeId, [id]);
    if (named === undefined) return null;
    const [record] = await this.turns.recordsOf([named.composed]);
    const own = record && (await this.#ownOf(record));
    if (own == null) return null;
    this.#requests.set(named.composed.seq, named);
    const prompt = await this.#promptOf(own);
    if (prompt === null) return null;
    const before = await this.#before(own);
    if (before === null) return { prompt, continued: null };
    await this.#nameRequest(before);
    return { prompt, continued: await this.#promptOf(before) };
  }

  /** Turns without tokens were restated with a later prompt and never sent as prompts. */
  async #before(own: FoundTurn): Promise<FoundTurn | null> {
    const parent = await this.turns.before(own);
    if (parent !== null && parent.turn.promptTokens > 0) return parent;
    const { n, conversation } = own.record.key;
    const filter = {
      kinds: WITH_TURNS,
      before: n,
      newestFirst: true,
      ...(conversation === null ? {} : { conversation }),
    };
    let looked = 0;
    for await (const keys of listInPages(this.parts.database, this.turns.scopeId, filter, MOST_LOOKED_AT)) {
      for (const record of await this.turns.recordsOf(keys)) {
        const turn = await this.#ownOf(record);
        if (turn !== null && turn.turn.conversationId === own.turn.conversationId) return turn;
        if (++looked === MOST_LOOKED_AT) return null;
      }
    }
    return null;
  }

  /** The turn of a record that was sent as a prompt: its last; null where that was only said again. */
  async #ownOf({ turns }: TurnRecord): Promise<FoundTurn | null> {
    const own = turns.at(-1);
    return own === undefined || own.turn.promptTokens === 0 ? null : this.turns.turn(own.turn.id);
  }

  async #nameRequest({ record }: FoundTurn): Promise<void> {
    const { requestId } = record.key;
    const [named] = requestId === null ? [] : await requestsNamed(this.parts.database, this.turns.scopeId, [requestId]);
    if (named !== undefined) this.#requests.set(named.composed.seq, named);
  }

  /** Null where a turn of its path is missing. */
  async #promptOf(found: FoundTurn): Promise<StoredPrompt | null> {
    const path = await this.#pathTo(found);
    if (path === null) return null;
    const { key, request } = found.record;
    // The request's id may have been used again.
    const named = this.#requests.get(key.seq) ?? null;
    const observed = named?.reported == null ? null : await reportOf(this.parts, named.reported);
    const { cachedTokens, promptTokens = null } = observed ?? {};
    return {
      requestId: named === null ? null : (named.requestId as RequestId),
      turns: path,
      head: await this.turns.head(found.turn.head),
      at: key.at,
      plan: named === null ? null : (request?.answer.plan ?? null),
      besideTokens: named === null ? 0 : (request?.answer.grounds?.besideTokens ?? 0),
      evicted: named?.isEvicted ?? false,
      report: cachedTokens === undefined ? null : { cachedTokens, promptTokens },
    };
  }

  async #pathTo(newest: FoundTurn): Promise<readonly SpokenTurn[] | null> {
    const path: FoundTurn[] = [];
    for await (const found of this.turns.upFrom(newest)) {
      if (found === null) return null;
      path.push(found);
    }
    const given = await this.turns.givenOf(path);
    return path.map(({ turn }, at) => ({ turn, given: wholeOf(given[at] ?? [null]) })).reverse();
  }
}
