import { setImmediate as setImmediateAsync } from "node:timers/promises";
import {
  canonicalText,
  cutText,
  digestOf,
  ENDED,
  type Label,
  MAX_MEMORY_CHARACTERS,
  type MemoryEnd,
  type MemoryId,
  ownWords,
  renderSection,
  retained,
  type Scope,
  type Turn,
} from "../../core/index.js";
import { type FoundQuotes, StaleScopeError, type Store, StoreUnavailableError } from "../../store/api/store.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import { deltaOf, type WorkingScope, type WorkingScopes } from "../scopes/working-scopes.js";

/** What happened to a memory, by its owner. */
export type MemoryEvent =
  | { readonly kind: "deleted"; readonly memoryId: MemoryId }
  | {
      readonly kind: "updated";
      readonly memoryId: MemoryId;
      /** Null: it stays. */
      readonly text: string | null;
      readonly end?: MemoryEnd | undefined;
    };

/**
 * Gives a memory that a scope knows a new text, or an end: later prompts use it, and the old one is not carried over. False where the scope
 * does not know the memory, or has this already.
 */
export async function updateIn(
  working: WorkingScope,
  store: Store,
  { memoryId, text, end }: Extract<MemoryEvent, { readonly kind: "updated" }>,
): Promise<boolean> {
  // Without a change there is no commit to find out.
  await working.check();
  const { scope, state } = working;
  const { register } = state;
  if (register.textsOf(memoryId).size === 0) return false;
  const until = end?.until ?? register.untilOf(memoryId);
  if (text !== null) register.resolve([{ id: memoryId, text: cutText(text, MAX_MEMORY_CHARACTERS) }]);
  if (end?.until === ENDED) register.withdraw([{ id: memoryId, replacedBy: end.replacedBy }]);
  else register.setUntil(memoryId, until);
  const delta = deltaOf(state);
  if (delta.changes.register.versions.length === 0) return false;
  await working.commit((base) => store.commitChanges(scope, base, delta));
  return true;
}

/** What forgetting a memory removed. */
export interface ForgottenMemory {
  /** Labels whose text was erased. */
  readonly labels: readonly Label[];
  /** Ids of the engine's responses that were given it: the engine still has them. */
  readonly responses: readonly string[];
}

/**
 * Forgets a memory in one scope: its text is erased from blocks, replayed turns and the application's messages, and its id is never sent
 * again.
 *
 * @param quotes the memory's present and former texts, with any agent, and where they are quoted
 * @param isInSource whether the memory source has to delete it, too
 * @param at milliseconds since the epoch
 */
async function forgetIn(
  working: WorkingScope,
  store: Store,
  memoryId: MemoryId,
  quotes: FoundQuotes,
  isInSource: boolean,
  at: number,
): Promise<ForgottenMemory> {
  const { scope, state } = working;
  const { register } = state;
  const gone = register.forget(memoryId);
  state.forget(gone);
  const sectionsOf = ({ injection, retention }: Pick<Turn, "injection" | "retention">) => {
    if (injection.blocks.some(({ label }) => register.get(label) === undefined))
      throw new StaleScopeError("another process composed since");
    return [injection, retained(injection, retention)]
      .map((standing) => renderSection(standing, register.textOf))
      .filter((section) => section !== "")
      .map(digestOf);
  };
  const { given: responses, others: keptResponses } = await store.responsesGiven(scope, gone);
  const record = { delta: deltaOf(state), memoryId, gone, quotes, sectionsOf, keptResponses, isInSource, at };
  await working.commit((base) => store.commitForgetting(scope, base, record));
  return { labels: [...gone], responses };
}

/** Searches for quotes in one forgetting, where other processes go on storing texts of the memory that were not searched for. */
const MAX_SEARCHES = 5;

/**
 * Forgets one memory of a user with every agent. Call it from the user's queue; other processes may compose for the user meanwhile.
 *
 * The first scope that forgets it is the turning point: its commit counts the deletion, so whatever another process planned before is stale,
 * and whatever it plans afterwards knows the memory as forgotten. So from then on no scope gets a text of it that it does not have, and only
 * then is it known which scopes there are, and which texts.
 */
export class MemoryForgetting {
  #quotes: FoundQuotes = { texts: [], rendered: [], scopes: new Map() };
  #searches = 0;

  constructor(
    private readonly parts: MemprefixParts,
    private readonly jobs: TenantQueues,
    private readonly scopes: WorkingScopes,
    /** The user's scope without an agent. */
    private readonly own: Scope,
    private readonly memoryId: MemoryId,
  ) {}

  async run(): Promise<ForgottenMemory> {
    await this.#search(await this.#textsInSource());
    const labels = new Set<Label>();
    const responses = new Set<string>();
    const done = new Set<string>();
    const forget = async (scope: Scope) => {
      if (done.has(nameOf(scope))) return;
      const forgotten = await this.#forgetIn(scope);
      for (const label of forgotten.labels) labels.add(label);
      for (const id of forgotten.responses) responses.add(id);
      done.add(nameOf(scope));
    };
    const [first = this.own] = await this.#listed();
    await forget(first);
    for (const scope of await this.#listed()) await forget(scope);
    return { labels: [...labels], responses: [...responses] };
  }

  /** The user's scopes; the one without an agent among them, whether it is stored or not. */
  async #listed(): Promise<readonly Scope[]> {
    const scopes = await this.parts.store.scopesOf(this.own.tenant, this.own.userId);
    return scopes.some(({ agentId }) => agentId === null) ? scopes : [...scopes, this.own];
  }

  /** The source's text may be in no prompt yet. If the source fails, the deletion reports it. */
  async #textsInSource(): Promise<readonly string[]> {
    const { source } = this.parts;
    const listed = source?.owned ? await source.list?.(this.own, this.jobs.closing).catch(() => []) : [];
    return (listed ?? []).filter(({ id }) => id === this.memoryId).map(({ text }) => canonicalText(text));
  }

  /** Finds where the memory is quoted. With several agents the quotes are erased here already. */
  async #search(texts: readonly string[]): Promise<void> {
    const { store } = this.parts;
    if (++this.#searches > MAX_SEARCHES) throw new StoreUnavailableError("busy");
    const { tenant, userId } = this.own;
    const quotes = await store.findQuotes(tenant, userId, this.memoryId, texts, () => setImmediateAsync());
    if (quotes.scopes.size > 1) await retryWhileLocked(() => store.eraseQuotes(quotes));
    this.#quotes = quotes;
  }

  async #forgetIn(scope: Scope): Promise<ForgottenMemory> {
    const { store, now, source } = this.parts;
    const isInSource = source?.owned === true;
    for (;;) {
      const gone = await retryWhileLocked(() =>
        this.scopes.use(scope, async (working) => {
          // Forgotten here, it could not be searched for any more.
          if (!this.#isSearched(working)) return null;
          return forgetIn(working, store, this.memoryId, this.#quotes, isInSource, now());
        }),
      );
      if (gone !== null) return gone;
      this.scopes.drop(scope);
      await this.#search(this.#quotes.texts);
    }
  }

  /** Whether quotes were searched for with all texts that a scope has of the memory: another process may have stored one since. */
  #isSearched({ state: { register } }: WorkingScope): boolean {
    const { memoryId } = this;
    const searched = new Set(this.#quotes.texts);
    return [...register.textsOf(memoryId)].every(([label, text]) =>
      searched.has(ownWords(text, register.isDated(memoryId, label))),
    );
  }
}

function nameOf({ agentId }: Scope): string {
  return JSON.stringify(agentId);
}
