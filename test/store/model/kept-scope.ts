import {
  type ChatMessage,
  type ConversationId,
  type Digest,
  EMPTY_SCOPE,
  type Label,
  labelsIn,
  messageDigest,
  messageText,
  type NodeId,
  type QuoteSearch,
  type RequestId,
  type Scope,
  type SpokenTurn,
  type StoredPrompt,
  type StoredScope,
  type Turn,
  type TurnId,
  withoutLabels,
} from "../../../src/core/index.js";
import type {
  AnsweredRequest,
  ComposeRecord,
  ContinuedPrompt,
  EngineReport,
  ExpiredTurns,
  ForgetRecord,
  GivenResponses,
  NamingTurn,
  ServedRequest,
  StoredAnswer,
  StoredHistory,
} from "../../../src/store/api/store.js";

/** Bounds of the port's: see `Store.loadConversation`, `Store.findReportedBefore` and `ContinuedPrompt`. */
const MOST_TURNS_LOADED = 1_000;
const REQUESTS_LOOKED_AT = 32;
const MOST_LOOKED_AT = 200;

/** A turn with its messages; null in place of one that was erased. */
export interface KeptTurn {
  readonly turn: Turn;
  readonly given: readonly (ChatMessage | null)[];
  readonly at: number;
}

/** The newest request of its id. */
export interface KeptRequest {
  readonly id: RequestId;
  readonly turn: TurnId;
  readonly leaf: NodeId;
  readonly body: Digest;
  readonly answer: StoredAnswer;
  readonly at: number;
  readonly evicted: boolean;
  readonly observed: EngineReport | null;
}

/** One scope: what composes put into it, and what is asked of it. Values are replaced, never changed: what was given out stays as it was. */
export class KeptScope {
  commits = 0;
  state: StoredScope = EMPTY_SCOPE;
  /** In the order of their ids. */
  readonly turns = new Map<TurnId, KeptTurn>();
  /** Instructions; one of which a message was erased is not here. */
  readonly heads = new Map<Digest, readonly ChatMessage[]>();
  /** With the turns that sent each. */
  readonly sections = new Map<Digest, Set<TurnId>>();
  readonly requests = new Map<RequestId, KeptRequest>();
  /** `used` grows with every use of a tenant's. */
  readonly responses = new Map<string, { readonly requestId: RequestId; readonly used: number }>();

  constructor(
    readonly id: number,
    readonly scope: Scope,
    readonly createdAt: number,
  ) {}

  compose({ composition, request, at }: Omit<ComposeRecord, "delta">): void {
    const { turn, given, restated, head, sections, leaf } = composition;
    this.heads.set(turn.head, head);
    for (const section of sections) this.#sent(section, turn.id);
    for (const said of [...restated, { turn, given }])
      this.turns.set(said.turn.id, { turn: said.turn, given: said.given, at });
    const { id, body, answer } = request;
    this.requests.set(id, { id, turn: turn.id, leaf, body, answer, at, evicted: false, observed: null });
  }

  changeRequest(id: RequestId, change: Partial<Pick<KeptRequest, "evicted" | "observed" | "answer">>): void {
    const request = this.requests.get(id);
    if (request !== undefined) this.requests.set(id, { ...request, ...change });
  }

  /** See `Store.commitWithdrawal`. */
  withdraw(id: TurnId): void {
    const isContinued = [...this.turns.values()].some(({ turn }) => turn.parent === id);
    if (!isContinued) this.removeTurns([id]);
  }

  /** With their requests, those requests' responses, and the instructions that no other turn has. */
  removeTurns(ids: readonly TurnId[]): void {
    for (const id of ids) this.turns.delete(id);
    for (const request of this.requests.values())
      if (ids.includes(request.turn)) {
        this.requests.delete(request.id);
        for (const [id, { requestId }] of this.responses) if (requestId === request.id) this.responses.delete(id);
      }
    const heads = new Set([...this.turns.values()].map(({ turn }) => turn.head));
    for (const head of this.heads.keys()) if (!heads.has(head)) this.heads.delete(head);
  }

  /** See `Store.commitExpiry`. */
  expire(ids: readonly TurnId[]): void {
    this.removeTurns(ids);
    for (const [section, turns] of this.sections) {
      for (const id of ids) turns.delete(id);
      if (turns.size === 0) this.sections.delete(section);
    }
  }

  #sent(section: Digest, turn: TurnId): void {
    this.sections.set(section, (this.sections.get(section) ?? new Set()).add(turn));
  }

  /** See `Store.responsesGiven`. */
  responsesGiven(labels: ReadonlySet<Label>): GivenResponses {
    const isGiven = ({ requestId }: { readonly requestId: RequestId }) => {
      const request = this.requests.get(requestId);
      const path = request === undefined ? [] : [...this.upFrom(request.turn)];
      return path.some((kept) => kept !== null && [...labelsIn(kept.turn.injection)].some((one) => labels.has(one)));
    };
    const all = [...this.responses].sort(([, a], [, b]) => a.used - b.used);
    const ids = (isWanted: boolean) => all.filter(([, one]) => isGiven(one) === isWanted).map(([id]) => id);
    return { given: ids(true), others: ids(false) };
  }

  /** Takes the labels and the id of a forgotten memory out of turns and answers, and all responses but those that are kept. */
  forget({ memoryId, gone, sectionsOf, keptResponses }: ForgetRecord): void {
    for (const id of this.responses.keys()) if (!keptResponses.includes(id)) this.responses.delete(id);
    for (const kept of this.turns.values()) {
      const { turn } = kept;
      if (![...labelsIn(turn.injection), ...turn.requested].some((label) => gone.has(label))) continue;
      const requested = turn.requested.filter((label) => !gone.has(label));
      const without = { ...turn, injection: withoutLabels(turn.injection, gone), requested };
      for (const section of sectionsOf(without)) this.#sent(section, turn.id);
      this.turns.set(turn.id, { ...kept, turn: without });
    }
    for (const { id, answer } of this.requests.values()) {
      const memories = answer.memories
        .filter((memory) => memory.memoryId !== memoryId && !gone.has(memory.label))
        .map((memory) => ({ ...memory, replaces: memory.replaces.filter((label) => !gone.has(label)) }));
      const warnings = answer.warnings.flatMap((warning) => {
        if (!warning.memoryIds?.includes(memoryId)) return [warning];
        const memoryIds = warning.memoryIds.filter((one) => one !== memoryId);
        return memoryIds.length === 0 ? [] : [{ ...warning, memoryIds }];
      });
      this.changeRequest(id, { answer: { ...answer, memories, warnings } });
    }
  }

  /** Erases the messages that quote something. */
  erase(search: QuoteSearch): void {
    if (search.isEmpty) return;
    for (const [id, kept] of this.turns) {
      const given = kept.given.map((message) => (message !== null && isQuoting(search, message) ? null : message));
      this.turns.set(id, { ...kept, given });
    }
    for (const [digest, head] of this.heads)
      if (head.some((message) => isQuoting(search, message))) this.heads.delete(digest);
  }

  /** Turns of a conversation, oldest first. */
  turnsOf(id: ConversationId): readonly KeptTurn[] {
    return [...this.turns.values()].filter(({ turn }) => turn.conversationId === id);
  }

  /** See `Store.loadConversation`. */
  conversation(id: ConversationId): Turn[] {
    const turns = this.turnsOf(id).map(({ turn }) => turn);
    const epoch = turns.at(-1)?.epoch ?? 0;
    return turns.filter((turn, at) => turn.id >= epoch || at >= turns.length - MOST_TURNS_LOADED);
  }

  /** A turn and those that it continues, newest first; null in place of one that is gone, which ends it. */
  *upFrom(id: TurnId): Generator<KeptTurn | null, void, undefined> {
    for (let next: TurnId | null = id; next !== null; ) {
      const found: KeptTurn | undefined = this.turns.get(next);
      yield found ?? null;
      next = found?.turn.parent ?? null;
    }
  }

  /** See `Store.findHistory`. */
  history(id: ConversationId): StoredHistory | null {
    const newest = this.turnsOf(id).at(-1);
    if (newest === undefined) return null;
    const read: { readonly turn: Turn; readonly given: readonly ChatMessage[] }[] = [];
    let isWhole = true;
    for (const found of this.upFrom(newest.turn.id)) {
      const given = found === null ? null : wholeOf(found.given);
      isWhole = given !== null;
      if (found === null || given === null) break;
      read.unshift({ turn: found.turn, given });
    }
    const sent = read.filter(({ turn }) => turn.promptTokens > 0);
    return {
      head: this.heads.get(newest.turn.head) ?? null,
      messages: read.flatMap(({ given }) => given),
      newest: read.at(-1)?.given.length ?? 0,
      isWhole,
      prompts: sent.map(({ turn }) => ({ total: turn.promptTokens, computed: turn.computedTokens })),
      hasOwnHead: read[0]?.given.length === 0,
      behind: read.findLast(({ turn }) => turn.behind !== null)?.turn.behind ?? null,
    };
  }

  /** See `Store.findRequest`. */
  answered(id: RequestId, said: readonly ChatMessage[]): AnsweredRequest | null {
    const request = this.requests.get(id);
    if (request === undefined) return null;
    const again = new Map(said.map((message) => [messageDigest(message), message]));
    const turns: { readonly turn: Turn; readonly given: readonly ChatMessage[] }[] = [];
    for (const found of this.upFrom(request.turn)) {
      if (found === null) return null;
      const { turn } = found;
      const given = wholeOf(turn.given.map((digest, at) => found.given[at] ?? again.get(digest) ?? null));
      if (given === null) return null;
      turns.unshift({ turn, given });
    }
    const head = this.heads.get(turns.at(-1)?.turn.head as Digest);
    return head === undefined ? null : { body: request.body, answer: request.answer, head, turns };
  }

  newestRequests(): readonly KeptRequest[] {
    return [...this.requests.values()].sort((a, b) => b.turn - a.turn);
  }

  requestOf(turn: TurnId): KeptRequest | null {
    return this.newestRequests().find((request) => request.turn === turn) ?? null;
  }

  /** See `Store.findReportedBefore`. */
  reportedBefore(turn: TurnId): ServedRequest | null {
    const before = this.newestRequests().filter((request) => request.turn < turn);
    const found = before.slice(0, REQUESTS_LOOKED_AT).find(({ observed }) => observed?.cachedTokens !== undefined);
    return found === undefined ? null : servedOf(found);
  }

  /** See `Store.underWaySince`. */
  underWaySince(since: number): number | null {
    const later = this.newestRequests().filter(({ at }) => at > since);
    if (later.length >= REQUESTS_LOOKED_AT) return since;
    return later.findLast(({ observed, evicted }) => observed === null && !evicted)?.at ?? null;
  }

  /** See `Store.findContinued`. */
  continuedBy(id: RequestId): ContinuedPrompt | null {
    const own = this.turns.get(this.requests.get(id)?.turn as TurnId);
    if (own === undefined) return null;
    const promptOf = (kept: KeptTurn): StoredPrompt | null => {
      const path = [...this.upFrom(kept.turn.id)];
      return path.every((one) => one !== null) ? this.#prompt(kept, path.reverse()) : null;
    };
    const prompt = promptOf(own);
    if (prompt === null) return null;
    const { id: ownId, conversationId, parent } = own.turn;
    const sent = [...this.turns.values()].filter(({ turn }) => turn.id < ownId && turn.promptTokens > 0).reverse();
    const isAlike = ({ turn }: KeptTurn) => turn.conversationId === conversationId;
    const looked = conversationId === null ? sent.slice(0, MOST_LOOKED_AT) : sent;
    const before = sent.find(({ turn }) => turn.id === parent) ?? looked.find(isAlike);
    return { prompt, continued: before === undefined ? null : promptOf(before) };
  }

  #prompt({ turn, at }: KeptTurn, path: readonly KeptTurn[]): StoredPrompt {
    const request = this.requestOf(turn.id);
    const { cachedTokens, promptTokens = null } = request?.observed ?? {};
    return {
      requestId: request?.id ?? null,
      turns: path.map((one): SpokenTurn => ({ turn: one.turn, given: wholeOf(one.given) })),
      head: this.heads.get(turn.head) ?? null,
      at,
      plan: request?.answer.plan ?? null,
      besideTokens: request?.answer.grounds?.besideTokens ?? 0,
      evicted: request?.evicted ?? false,
      report: cachedTokens === undefined ? null : { cachedTokens, promptTokens },
    };
  }

  /** A conversation's turns are used together. */
  isOld({ turn, at }: KeptTurn, before: number): boolean {
    const { conversationId } = turn;
    const together = conversationId === null ? [] : this.turnsOf(conversationId);
    return Math.max(at, ...together.map((one) => one.at)) < before;
  }

  /** See `Store.findExpired`. */
  expired(before: number, among: readonly TurnId[]): ExpiredTurns {
    const old = among.flatMap((id) => this.turns.get(id) ?? []).filter((kept) => this.isOld(kept, before));
    const live = old.flatMap(({ turn }) => this.requestOf(turn.id) ?? []).filter(({ evicted }) => !evicted);
    return { expired: old.map(namingOf), live: live.map(({ leaf, turn }) => ({ leaf, turn })) };
  }
}

/** A turn's messages are kept with it. */
export function namingOf({ turn }: KeptTurn): NamingTurn {
  const { id, conversationId, injection, retention, requested, head } = turn;
  return { id, conversationId, injection, retention, requested, head, messages: [] };
}

export function servedOf({ leaf, turn, at, answer, evicted, observed }: KeptRequest): ServedRequest {
  return { leaf, turn, at, plan: answer.plan, grounds: answer.grounds, evicted, observed };
}

function wholeOf(given: readonly (ChatMessage | null)[]): readonly ChatMessage[] | null {
  return given.every((message) => message !== null) ? given : null;
}

/** In any encoding; a reader takes a text in several parts for one. */
function isQuoting(search: QuoteSearch, message: ChatMessage): boolean {
  return search.isIn(JSON.stringify(message)) || search.isIn(messageText(message));
}
