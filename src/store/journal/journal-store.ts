import type { Scope } from "../../core/index.js";
import type { Store, StoredVersion } from "../api/store.js";
import { commitChanges, commitCompose, commitEnd, commitEviction, commitReport } from "./commits.js";
import { commitForgetting, eraseQuotes, findQuotes } from "./forgetting.js";
import type { JournalDatabase } from "./journal-database.js";
import { type JournalParts, journalParts } from "./journal-parts.js";
import { KnownScopes } from "./known-scopes.js";
import { commitExpiry, commitWithdrawal, findScopesWithOldTurns, OldTurns } from "./record-removal.js";
import { findLiveRequests, PromptReading, RequestReading } from "./request-reading.js";
import {
  findScopesWithMemory,
  historyOf,
  loadScope,
  readConversation,
  readHistory,
  TurnReading,
} from "./turn-reading.js";
import { exportUser } from "./user-export.js";

const NO_RESPONSES = { given: [], others: [] };
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

  loadScope: Store["loadScope"] = (...of) => loadScope(this.#parts, ...of);

  loadConversation: Store["loadConversation"] = (scope, id) =>
    this.#within(scope, [], (scopeId) => readConversation(new TurnReading(this.#parts, scopeId), id));

  knownHistory: Store["knownHistory"] = async (scope, id, version) => {
    const known = this.#known.pathAt(scope, version, id);
    return known === null ? null : historyOf(known);
  };

  findHistory: Store["findHistory"] = (scope, id) =>
    this.#within(scope, null, async (scopeId, version) => {
      const known = await this.knownHistory(scope, id, version);
      if (known !== null) return known;
      const read = await readHistory(new TurnReading(this.#parts, scopeId), id);
      // Where other processes have committed meanwhile, this is not the stored version any more.
      if (read?.path != null) this.#known.read(scope, version, id, read.path);
      return read?.history ?? null;
    });

  commitCompose: Store["commitCompose"] = async (scope, base, record) => {
    const known = this.#known.rowsAt(scope, base.version);
    return this.#known.composed(
      scope,
      base,
      record.composition,
      commitCompose(this.#parts, known, scope, base, record),
    );
  };

  commitEviction: Store["commitEviction"] = (scope, base, ...of) =>
    this.#known.kept(scope, base, commitEviction(this.#parts, scope, base, ...of));

  commitChanges: Store["commitChanges"] = (scope, base, ...of) =>
    this.#known.kept(scope, base, commitChanges(this.#parts, scope, base, ...of));

  commitReport: Store["commitReport"] = (scope, base, ...of) =>
    this.#known.kept(scope, base, commitReport(this.#parts, scope, base, ...of));

  commitWithdrawal: Store["commitWithdrawal"] = (scope, ...of) =>
    this.#known.ended(scope, commitWithdrawal(this.#parts, scope, ...of));

  commitForgetting: Store["commitForgetting"] = (scope, ...of) =>
    this.#known.ended(scope, commitForgetting(this.#parts, scope, ...of));

  commitExpiry: Store["commitExpiry"] = (scope, ...of) =>
    this.#known.ended(scope, commitExpiry(this.#parts, scope, ...of));

  commitEnd: Store["commitEnd"] = (scope, base) => this.#known.ended(scope, commitEnd(this.#parts, scope, base));

  findQuotes: Store["findQuotes"] = (...of) => findQuotes(this.#parts, ...of);
  eraseQuotes: Store["eraseQuotes"] = (quotes) => eraseQuotes(this.#parts, quotes);
  scopesWithMemory: Store["scopesWithMemory"] = (...of) => findScopesWithMemory(this.#parts, ...of);
  scopesWithOldTurns: Store["scopesWithOldTurns"] = (...of) => findScopesWithOldTurns(this.#parts, ...of);

  scanTurns: Store["scanTurns"] = (scope, before, after, most) => {
    const none = { expired: [], remaining: [], next: null };
    return this.#within(scope, none, (scopeId) => new OldTurns(this.#parts, scopeId, before).scan(after, most));
  };

  findExpired: Store["findExpired"] = (scope, before, among) => {
    const none = { expired: [], live: [] };
    return this.#within(scope, none, (scopeId) => new OldTurns(this.#parts, scopeId, before).among(among));
  };

  findRequest: Store["findRequest"] = (scope, id, said = []) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).answered(id, said));

  findResponse: Store["findResponse"] = (scope, id) =>
    this.#within(scope, null, (scopeId) => this.database.findResponse(scopeId, id));

  responsesGiven: Store["responsesGiven"] = (scope, labels) =>
    this.#within(scope, NO_RESPONSES, (scopeId) => this.#requests(scopeId).responsesGiven(labels));

  keepResponse: Store["keepResponse"] = (scope, deletions, id, requestId, ...of) =>
    this.database.keepResponse(scope, deletions, { id, requestId }, ...of);

  findLiveRequests: Store["findLiveRequests"] = (...of) => findLiveRequests(this.database, ...of);

  countServedSince: Store["countServedSince"] = (scope, ...of) =>
    this.#within(scope, 0, (scopeId) => this.#requests(scopeId).servedSince(...of));

  findServed: Store["findServed"] = (scope, id) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).served(id));

  findWorker: Store["findWorker"] = (scope, turn) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).workerOf(turn));

  findReportedBefore: Store["findReportedBefore"] = (scope, turn) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).reportedBefore(turn));

  underWaySince: Store["underWaySince"] = (scope, since) =>
    this.#within(scope, null, (scopeId) => this.#requests(scopeId).underWaySince(since));

  findContinued: Store["findContinued"] = (scope, id) =>
    this.#within(scope, null, (scopeId) =>
      new PromptReading(this.#parts, new TurnReading(this.#parts, scopeId)).continuedBy(id),
    );

  knownSections: Store["knownSections"] = (scope, sections) =>
    this.#within(scope, [], (_scopeId, version) => this.#known.sectionsAmong(scope, version, sections));

  counts: Store["counts"] = (scope) => this.#within(scope, NO_COUNTS, (scopeId) => this.database.counts(scopeId));

  liveRequests: Store["liveRequests"] = (scope, limit) =>
    this.#within(scope, [], (scopeId) => this.#requests(scopeId).newestLive(limit));

  usersAfter: Store["usersAfter"] = (...of) => this.database.usersAfter(...of);
  scopesOf: Store["scopesOf"] = async (...of) => (await this.database.scopesOf(...of)).map(({ scope }) => scope);

  deleteUser: Store["deleteUser"] = (...of) => this.database.deleteUser(...of);

  usersPendingInSource: Store["usersPendingInSource"] = (...of) => this.database.usersPendingInSource(...of);
  exportUser: Store["exportUser"] = (...of) => exportUser(this.#parts, ...of);

  #requests(scopeId: number): RequestReading {
    return new RequestReading(this.#parts, scopeId);
  }

  /** Answers a question about a scope; one that was never stored has `none`. */
  async #within<T>(scope: Scope, none: T, answer: (scopeId: number, version: StoredVersion) => Promise<T>): Promise<T> {
    const version = await this.database.versionOf(scope);
    return version === null ? none : answer(version.scopeId, version);
  }
}
