import type {
  ChatMessage,
  ConversationId,
  Digest,
  MemoryId,
  RequestId,
  Scope,
  TurnId,
  UserId,
} from "../../core/index.js";
import type {
  CommitBase,
  ComposeRecord,
  EngineReport,
  ExpiryRecord,
  ForgetRecord,
  FoundQuotes,
  Store,
  StoredResponse,
  StoredVersion,
} from "../api/store.js";
import type { ScopeDelta } from "../api/user-data.js";
import { commitChanges, commitCompose, commitEnd, commitEviction, commitReport } from "./commits.js";
import { commitForgetting, eraseQuotes } from "./forgetting.js";
import type { JournalDatabase } from "./journal-database.js";
import { type JournalParts, journalParts } from "./journal-parts.js";
import { KnownScopes } from "./known-scopes.js";
import { findScopesWithOldTurns, OldTurns } from "./old-turns.js";
import { PromptReading } from "./prompt-reading.js";
import { findQuotes } from "./quote-scan.js";
import { commitExpiry, commitWithdrawal } from "./record-removal.js";
import { findLiveRequests, RequestReading } from "./request-reading.js";
import { findScopesWithMemory, loadScope } from "./scope-loading.js";
import { historyOf, readConversation, readHistory, TurnReading } from "./turn-reading.js";
import { exportUser } from "./user-export.js";

const NO_COUNTS = { conversations: 0, turns: 0, requests: 0 };

/** The store as a journal in a {@link JournalDatabase}. What a question or a commit means is in a file of its own; here is which is which. */
export class JournalStore implements Store {
  readonly #parts: JournalParts;
  readonly #known: KnownScopes;

  constructor(private readonly database: JournalDatabase) {
    this.#parts = journalParts(database);
    this.#known = new KnownScopes(this.#parts);
  }

  idle: Store["idle"] = (...of) => this.database.idle(...of);
  versionOf: Store["versionOf"] = (...of) => this.database.versionOf(...of);
  deletionsOf: Store["deletionsOf"] = (...of) => this.database.deletionsOf(...of);
  countFirstTokenTimes: Store["countFirstTokenTimes"] = (...of) => this.database.countFirstTokenTimes(...of);
  firstTokenTimes: Store["firstTokenTimes"] = (...of) => this.database.firstTokenTimes(...of);
  keepFirstTokenTime: Store["keepFirstTokenTime"] = (...of) => this.database.keepFirstTokenTime(...of);
  pendingInSource: Store["pendingInSource"] = (...of) => this.database.pendingInSource(...of);
  deletedFromSource: Store["deletedFromSource"] = (...of) => this.database.deletedFromSource(...of);
  emptyLog: Store["emptyLog"] = (...of) => this.database.emptyLog(...of);
  erased: Store["erased"] = (...of) => this.database.erased(...of);
  ping: Store["ping"] = (...of) => this.database.ping(...of);
  close: Store["close"] = (...of) => this.database.close(...of);

  loadScope(scope: Scope, conversationId: ConversationId | null = null) {
    return loadScope(this.#parts, scope, conversationId, this.#known.loaded);
  }

  loadConversation: Store["loadConversation"] = (scope, id) =>
    this.#within(scope, [], (scopeId) => readConversation(new TurnReading(this.#parts, scopeId), id));

  async knownHistory(scope: Scope, id: ConversationId, version: StoredVersion) {
    const known = this.#known.histories.at(scope, version, id);
    return known === null ? null : historyOf(known);
  }

  async findHistory(scope: Scope, id: ConversationId, at: StoredVersion | null = null) {
    const loaded = at === null ? null : this.#known.loaded.at(scope, at, id);
    if (at !== null && loaded !== null) return this.#readHistory(scope, at, id, loaded);
    return this.#within(scope, null, async (scopeId, version) => {
      const known = await this.knownHistory(scope, id, version);
      return known ?? this.#readHistory(scope, version, id, new TurnReading(this.#parts, scopeId));
    });
  }

  commitCompose(scope: Scope, base: CommitBase, record: ComposeRecord) {
    const committed = commitCompose(this.#parts, this.#known.rows, scope, base, record);
    return this.#known.composed(scope, base, record.composition, committed);
  }

  commitEviction(scope: Scope, base: CommitBase, delta: ScopeDelta, requestIds: readonly RequestId[]) {
    return this.#known.kept(scope, base, commitEviction(this.#parts, scope, base, delta, requestIds));
  }

  commitWithdrawal(scope: Scope, base: CommitBase, delta: ScopeDelta, turn: TurnId) {
    return this.#known.ended(scope, commitWithdrawal(this.#parts, scope, base, delta, turn));
  }

  commitChanges(scope: Scope, base: CommitBase, delta: ScopeDelta) {
    return this.#known.kept(scope, base, commitChanges(this.#parts, scope, base, delta));
  }

  commitReport(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    report: { readonly id: RequestId; readonly observed: EngineReport },
  ) {
    return this.#known.kept(scope, base, commitReport(this.#parts, scope, base, delta, report));
  }

  commitForgetting(scope: Scope, base: CommitBase, record: ForgetRecord) {
    return this.#known.ended(scope, commitForgetting(this.#parts, scope, base, record));
  }

  commitExpiry(scope: Scope, base: CommitBase, record: ExpiryRecord) {
    return this.#known.ended(scope, commitExpiry(this.#parts, scope, base, record));
  }

  commitEnd(scope: Scope, base: CommitBase) {
    return this.#known.ended(scope, commitEnd(this.#parts, scope, base));
  }

  findQuotes(
    tenant: string,
    userId: UserId,
    memoryId: MemoryId,
    texts: readonly string[],
    pause: () => Promise<void>,
  ): Promise<FoundQuotes> {
    return findQuotes(this.#parts, tenant, userId, memoryId, texts, pause);
  }

  eraseQuotes(quotes: FoundQuotes) {
    return eraseQuotes(this.#parts, quotes);
  }

  scopesWithMemory(tenant: string, memoryId: MemoryId, after: number) {
    return findScopesWithMemory(this.#parts, tenant, memoryId, after);
  }

  scopesWithOldTurns(before: number, after: number) {
    return findScopesWithOldTurns(this.#parts, before, after);
  }

  scanTurns(scope: Scope, before: number, after: TurnId | 0, most: number) {
    const none = { expired: [], remaining: [], next: null };
    return this.#within(scope, none, (scopeId) => new OldTurns(this.#parts, scopeId, before).scan(after, most));
  }

  findExpired(scope: Scope, before: number, among: readonly TurnId[]) {
    const none = { expired: [], live: [] };
    return this.#within(scope, none, (scopeId) => new OldTurns(this.#parts, scopeId, before).among(among));
  }

  findRequest: Store["findRequest"] = (scope, id, said = []) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).answered(id, said));

  findResponse(scope: Scope, id: Digest): Promise<StoredResponse | null> {
    return this.#within(scope, null, async (scopeId) => {
      const { digests } = this.#parts;
      const row = await this.database.findResponse(scopeId, digests.seal(id));
      if (row === null) return null;
      return {
        requestId: row.requestId as RequestId,
        isHeld: row.held,
        sent: { count: row.sentMessages, digest: digests.open(row.sent) },
        output: JSON.parse(row.output) as readonly ChatMessage[],
      };
    });
  }

  keepResponse(
    scope: Scope,
    deletions: CommitBase["deletions"],
    id: Digest,
    { requestId, isHeld, sent, output }: StoredResponse,
    continued: Digest | null,
    most: number,
  ) {
    const { digests } = this.#parts;
    const row = {
      id: digests.seal(id),
      requestId,
      held: isHeld,
      sentMessages: sent.count,
      sent: digests.seal(sent.digest),
      output: JSON.stringify(output),
    };
    const used = continued === null ? null : digests.seal(continued);
    return this.database.keepResponse(scope, deletions, row, used, most);
  }

  findLiveRequests(tenant: string, ids: readonly RequestId[]) {
    return findLiveRequests(this.database, tenant, ids);
  }

  countServedSince: Store["countServedSince"] = (scope, leaf, turn, most) =>
    this.#within(scope, 0, (scopeId) => this.#requests(scopeId).servedSince(leaf, turn, most));

  findServed: Store["findServed"] = (scope, id) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).served(id));

  findWorker: Store["findWorker"] = (scope, turn) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).workerOf(turn));

  findReportedBefore: Store["findReportedBefore"] = (scope, turn) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).reportedBefore(turn));

  underWaySince: Store["underWaySince"] = (scope, since) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).underWaySince(since));

  findPromptHistory: Store["findPromptHistory"] = (scope, id) =>
    this.#within(scope, null, (scopeId) =>
      new PromptReading(this.#parts, new TurnReading(this.#parts, scopeId)).historyOf(id),
    );

  knownSections: Store["knownSections"] = (scope, sections) =>
    this.#within(scope, [], (_scopeId, version) => this.#known.sections.find(scope, version, sections));

  counts: Store["counts"] = (scope) => this.#within(scope, NO_COUNTS, (scopeId) => this.database.counts(scopeId));

  liveRequests: Store["liveRequests"] = (scope, limit) =>
    this.#within(scope, [], (scopeId) => this.#requests(scopeId).newestLive(limit));

  async scopesOf(tenant: string, userId: UserId) {
    return (await this.database.scopesOf(tenant, userId)).map(({ scope }) => scope);
  }

  deleteUser(tenant: string, userId: UserId, isInSource: boolean) {
    return this.database.deleteUser(tenant, userId, { memoryId: null, isInSource }, []);
  }

  async usersPendingInSource() {
    return [...(await this.database.usersPendingInSource())];
  }

  exportUser(tenant: string, userId: UserId, pause: () => Promise<void>) {
    return exportUser(this.#parts, tenant, userId, pause);
  }

  async #readHistory(scope: Scope, version: StoredVersion, id: ConversationId, reading: TurnReading) {
    const read = await readHistory(reading, id);
    // Where other processes have committed meanwhile, this is not the stored version any more.
    if (read?.path != null) this.#known.histories.read(scope, version, id, read.path);
    return read?.history ?? null;
  }

  #requests(scopeId: number): RequestReading {
    return new RequestReading(this.#parts, scopeId);
  }

  /** Answers a question about a scope; one that was never stored has `none`. */
  async #within<T>(scope: Scope, none: T, answer: (scopeId: number, version: StoredVersion) => Promise<T>): Promise<T> {
    const version = await this.database.versionOf(scope);
    return version === null ? none : answer(version.scopeId, version);
  }
}
