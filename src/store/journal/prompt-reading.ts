import type { ChatMessage, Digest, RequestId, SpokenTurn, StoredPrompt, TurnId } from "../../core/index.js";
import type { PromptHistory, ServedRequest } from "../api/store.js";
import { listInPages } from "./body-reading.js";
import { type RecordKey, WITH_TURNS } from "./journal-database.js";
import { type JournalParts, reportIn } from "./journal-parts.js";
import { type NamedRequest, requestsNamed } from "./request-reading.js";
import { type FoundTurn, type TurnReading, type TurnRecord, wholeOf } from "./turn-reading.js";

/** Newest prompts of a scope that are compared … */
const NEWEST_OF_SCOPE = 200;
/** … and of the conversation. */
const NEWEST_OF_CONVERSATION = 100;
/** Most turns read for prompts of other conversations; prompts that need more are left out. */
const MOST_TURNS = 5_000;

/** Reads a request's prompt and the earlier ones to compare it with; see `Store.findPromptHistory`. */
export class PromptReading {
  /** Turns of prompts' paths, … */
  readonly #followed = new Set<TurnId>();
  /** … and those of them of which what was said is read. */
  readonly #spoken = new Map<TurnId, SpokenTurn>();
  readonly #heads = new Map<Digest, readonly ChatMessage[] | null>();
  /** Requests by the record of their prompt. */
  readonly #requests = new Map<number, NamedRequest>();

  constructor(
    private readonly parts: JournalParts,
    private readonly turns: TurnReading,
  ) {}

  async historyOf(id: RequestId): Promise<PromptHistory | null> {
    const [named] = await requestsNamed(this.parts.database, this.turns.scopeId, [id]);
    if (named === undefined) return null;
    const [record] = await this.turns.recordsOf([named.composed]);
    const own = record && (await this.#ownOf(record));
    if (own == null) return null;
    this.#requests.set(named.composed.seq, named);
    const prompt = await this.#promptOf(own, Number.POSITIVE_INFINITY);
    if (prompt === null) return null;
    const { found, sent } = await this.#before(own);
    await this.#nameRequests(found);
    // Prompts share most of their texts: read together.
    await this.turns.givenOf([own, ...found]);
    const earlier: StoredPrompt[] = [];
    for (const candidate of found) {
      const isOfConversation = candidate.turn.conversationId === own.turn.conversationId;
      const read = await this.#promptOf(candidate, isOfConversation ? Number.POSITIVE_INFINITY : MOST_TURNS);
      if (read !== null) earlier.push(read);
    }
    return { prompt, earlier, isComplete: earlier.length === sent };
  }

  /**
   * The prompts to compare one with, newest first: the newest before it of its scope and of its conversation, and its parent. `sent`: how
   * many the scope sent before it; counted up to more than there can be here.
   */
  async #before(own: FoundTurn): Promise<{ readonly found: readonly FoundTurn[]; readonly sent: number }> {
    const { key } = own.record;
    const earlier = { kinds: WITH_TURNS, before: key.n, newestFirst: true };
    const newest = await this.#sentIn(earlier, NEWEST_OF_SCOPE);
    const found = new Map(newest.map((turn) => [turn.turn.id, turn]));
    if (key.conversation !== null) {
      const { conversationId } = own.turn;
      const isAlike = ({ turn }: FoundTurn) => turn.conversationId === conversationId;
      const alike = await this.#sentIn({ ...earlier, conversation: key.conversation }, NEWEST_OF_CONVERSATION, isAlike);
      for (const turn of alike) found.set(turn.turn.id, turn);
    }
    const parent = await this.turns.before(own);
    if (parent !== null && parent.turn.promptTokens > 0) found.set(parent.turn.id, parent);
    const sent = await this.#countSent(earlier, found.size + 1);
    return { found: [...found.values()].sort((a, b) => b.turn.id - a.turn.id), sent };
  }

  /** The newest prompts among some records. Turns without tokens were restated with a later prompt and never sent as prompts. */
  async #sentIn(
    filter: Parameters<typeof listInPages>[2],
    most: number,
    isWanted: (turn: FoundTurn) => boolean = () => true,
  ): Promise<readonly FoundTurn[]> {
    const found: FoundTurn[] = [];
    for await (const keys of listInPages(this.parts.database, this.turns.scopeId, filter, most)) {
      for (const record of await this.turns.recordsOf(keys)) {
        const turn = await this.#ownOf(record);
        if (turn !== null && isWanted(turn)) found.push(turn);
        if (found.length === most) return found;
      }
    }
    return found;
  }

  /** How many prompts some records have; counted up to `most`. */
  async #countSent(filter: Parameters<typeof listInPages>[2], most: number): Promise<number> {
    let sent = 0;
    for await (const keys of listInPages(this.parts.database, this.turns.scopeId, filter)) {
      for (const key of keys) {
        if (key.kind === "composed" || (await this.#isSent(key))) sent++;
        if (sent === most) return sent;
      }
    }
    return sent;
  }

  async #isSent(key: RecordKey): Promise<boolean> {
    const [record] = await this.turns.recordsOf([key]);
    return record !== undefined && (await this.#ownOf(record)) !== null;
  }

  /** The turn of a record that was sent as a prompt: its last; null where that was only said again. */
  async #ownOf({ turns }: TurnRecord): Promise<FoundTurn | null> {
    const own = turns.at(-1);
    return own === undefined || own.turn.promptTokens === 0 ? null : this.turns.turn(own.turn.id);
  }

  async #nameRequests(found: readonly FoundTurn[]): Promise<void> {
    const ids = found.flatMap(({ record }) => record.key.requestId ?? []);
    for (const named of await requestsNamed(this.parts.database, this.turns.scopeId, ids))
      this.#requests.set(named.composed.seq, named);
  }

  /** Null where a turn of its path is missing, or would be read past `mostTurns`. */
  async #promptOf(found: FoundTurn, mostTurns: number): Promise<StoredPrompt | null> {
    const path = await this.#pathTo(found, mostTurns);
    if (path === null) return null;
    const { key, request } = found.record;
    // The request's id may have been used again.
    const named = this.#requests.get(key.seq) ?? null;
    const observed = named?.reported == null ? null : await this.#reportOf(named.reported);
    const { cachedTokens, promptTokens = null } = observed ?? {};
    return {
      requestId: named === null ? null : (named.requestId as RequestId),
      turns: path,
      head: await this.#head(found.turn.head),
      at: key.at,
      plan: named === null ? null : (request?.answer.plan ?? null),
      evicted: named?.isEvicted ?? false,
      report: cachedTokens === undefined ? null : { cachedTokens, promptTokens },
    };
  }

  async #pathTo(newest: FoundTurn, mostTurns: number): Promise<readonly SpokenTurn[] | null> {
    const path: FoundTurn[] = [];
    for await (const found of this.turns.upFrom(newest)) {
      if (found === null) return null;
      const { id } = found.turn;
      if (!this.#followed.has(id) && this.#followed.size >= mostTurns) return null;
      this.#followed.add(id);
      path.push(found);
    }
    const unread = path.filter(({ turn }) => !this.#spoken.has(turn.id));
    const given = await this.turns.givenOf(unread);
    for (const [at, { turn }] of unread.entries())
      this.#spoken.set(turn.id, { turn, given: wholeOf(given[at] ?? [null]) });
    return path.flatMap(({ turn }) => this.#spoken.get(turn.id) ?? []).reverse();
  }

  async #reportOf({ seq }: RecordKey): Promise<ServedRequest["observed"]> {
    const [record] = await this.parts.database.read([seq]);
    return record === undefined ? null : reportIn(this.parts, record);
  }

  async #head(digest: Digest): Promise<readonly ChatMessage[] | null> {
    const known = this.#heads.get(digest);
    if (known !== undefined) return known;
    const head = await this.turns.head(digest);
    this.#heads.set(digest, head);
    return head;
  }
}
