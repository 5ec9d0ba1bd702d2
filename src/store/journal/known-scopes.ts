import { type ChatMessage, type ConversationId, type Digest, LruMap, type Scope } from "../../core/index.js";
import { type CommitBase, type ComposeRecord, isSameVersion, type StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import { listInPages, readInPieces } from "./body-reading.js";
import type { JournalRecord, RecordKind } from "./journal-database.js";
import { decodedOf, type JournalParts } from "./journal-parts.js";
import type { GivenTurn } from "./shared-messages.js";
import type { SaidPath, TurnReading } from "./turn-reading.js";

/**
 * What is known of scopes, each at one version of it: our commits advance it, another process's commit invalidates it. In memory only, and
 * bounded: the scope that was used longest ago goes first.
 */
export class VersionedScopes<T> {
  readonly #scopes = new LruMap<string, { version: StoredVersion; readonly value: T; readonly size: number }>();
  #size = 0;

  /** @param most scopes, and the sum of their sizes */
  constructor(private readonly most: { readonly scopes: number; readonly size?: number }) {}

  /** Counts as a use. */
  at(scope: Scope, version: StoredVersion | null): T | undefined {
    const name = scopeName(scope);
    const known = this.#scopes.peek(name);
    if (known === undefined || version === null || !isSameVersion(known.version, version)) return undefined;
    this.#scopes.get(name);
    return known.value;
  }

  set(scope: Scope, version: StoredVersion, value: T, size = 0): void {
    const name = scopeName(scope);
    this.#drop(name);
    this.#scopes.set(name, { version, value, size });
    this.#size += size;
    const { scopes, size: mostSize = Number.POSITIVE_INFINITY } = this.most;
    while (this.#size > mostSize || this.#scopes.size > scopes) this.#drop(this.#scopes.oldest ?? name);
  }

  /** After a commit that changed nothing of what is known. */
  advance(scope: Scope, before: StoredVersion | null, next: StoredVersion): void {
    const name = scopeName(scope);
    const known = this.at(scope, before) === undefined ? undefined : this.#scopes.peek(name);
    if (known === undefined) this.#drop(name);
    else known.version = next;
  }

  delete(scope: Scope): void {
    this.#drop(scopeName(scope));
  }

  #drop(name: string): void {
    this.#size -= this.#scopes.peek(name)?.size ?? 0;
    this.#scopes.delete(name);
  }
}

/** A scope in one text. */
function scopeName({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
}

/** Rows that are remembered, of all scopes: some 20 MB, … */
const MOST_ROWS = 200_000;
/** … of one, … */
const MOST_ROWS_OF_SCOPE = 20_000;
/** … and scopes, which take half a kilobyte each. */
const SCOPES_WITH_ROWS = 10_000;

/**
 * Which shared rows are stored, so that they are not written again with every prompt that refers to them. A row is remembered from the
 * commit that wrote it, at the version that this made. Whatever removes rows makes another version, and is not reported here; a commit on a
 * version that is not the stored one is rejected. So no record refers to a row that was removed.
 */
export class KnownRows {
  /** Of each scope, those used last at the end. */
  readonly #scopes: VersionedScopes<Set<Digest>>;

  constructor(
    mostRows = MOST_ROWS,
    private readonly mostOfScope = MOST_ROWS_OF_SCOPE,
  ) {
    this.#scopes = new VersionedScopes({ scopes: SCOPES_WITH_ROWS, size: mostRows });
  }

  /** The rows of a scope that are known to be stored at a version. */
  at(scope: Scope, version: StoredVersion | null): ReadonlySet<Digest> {
    return this.#scopes.at(scope, version) ?? new Set();
  }

  /** A commit that removed no row has taken a scope to its next version; with these rows, used by it. */
  committed(scope: Scope, before: StoredVersion | null, next: StoredVersion, used: Iterable<Digest> = []): void {
    const rows = this.#scopes.at(scope, before) ?? new Set();
    for (const row of used) {
      rows.delete(row);
      rows.add(row);
    }
    for (const oldest of rows) {
      if (rows.size <= this.mostOfScope) break;
      rows.delete(oldest);
    }
    if (rows.size === 0) this.#scopes.delete(scope);
    else this.#scopes.set(scope, next, rows, rows.size);
  }
}

/** Kinds of records that name sections. */
const WITH_SECTIONS: readonly RecordKind[] = ["said", "composed", "forgotten", "withdrawn"];
/** Records that are looked at together: a section that comes back was mostly sent a short while ago. */
const AT_ONCE = 64;
/** Scopes whose sections are remembered, the last that were asked for … */
const SCOPES_WITH_SECTIONS = 16;
/** … and the most sections of one: some 2 MB. A scope with more is read each time. */
const MOST_SECTIONS = 20_000;

/**
 * Which sections were ever sent in a scope. Records are read, newest first, until all that are asked for are found; so all of them where one
 * is not ours. What was read then is remembered for as long as no other process commits.
 */
export class KnownSections {
  readonly #remembered = new VersionedScopes<Set<SealedDigest>>({ scopes: SCOPES_WITH_SECTIONS });

  constructor(
    private readonly parts: JournalParts,
    private readonly mostSections = MOST_SECTIONS,
  ) {}

  /** See `Store.knownSections`. `version`: of the scope, as it is stored. */
  async find(scope: Scope, version: StoredVersion, sections: readonly Digest[]): Promise<readonly Digest[]> {
    const { digests } = this.parts;
    const wanted = new Set(sections.map((section) => digests.seal(section)));
    const found = this.#remembered.at(scope, version) ?? (await this.#read(scope, version, wanted));
    return sections.filter((section) => found.has(digests.seal(section)));
  }

  /** This process composed in a scope, or changed nothing of its sections: what is remembered at the version before is so at the next. */
  committed(scope: Scope, before: StoredVersion | null, next: StoredVersion, sections: readonly Digest[]): void {
    const remembered = this.#remembered.at(scope, before);
    if (remembered === undefined) return;
    for (const section of sections) remembered.add(this.parts.digests.seal(section));
    if (remembered.size <= this.mostSections) this.#remembered.advance(scope, before, next);
    else this.#remembered.delete(scope);
  }

  /** Reads sections until all that are wanted are among them; else remembers them, as those are all that there are. */
  async #read(
    scope: Scope,
    version: StoredVersion,
    wanted: ReadonlySet<SealedDigest>,
  ): Promise<ReadonlySet<SealedDigest>> {
    const { database } = this.parts;
    const { scopeId } = version;
    const missing = new Set(wanted);
    const found = new Set<SealedDigest>();
    for await (const keys of listInPages(database, scopeId, { kinds: WITH_SECTIONS, newestFirst: true }, AT_ONCE)) {
      const seqs = keys.map(({ seq }) => seq);
      await readInPieces(database, seqs, (record) => {
        for (const section of this.#sectionsIn(record)) {
          missing.delete(section);
          if (found.size <= this.mostSections || wanted.has(section)) found.add(section);
        }
      });
      if (missing.size === 0) return found;
    }
    // Other processes may have committed while this read: then there are more, and the version is not the stored one any more.
    if (found.size <= this.mostSections) this.#remembered.set(scope, version, found);
    return found;
  }

  #sectionsIn(record: JournalRecord): readonly SealedDigest[] {
    const { kind, said } = record;
    if (said === null) return [];
    const codec = this.parts.said;
    const isComposed = kind === "said" || kind === "composed";
    return decodedOf(record, () => (isComposed ? codec.sealedSections(said) : codec.sealedForgotten(said)));
  }
}

/** Characters of messages that are remembered, of all scopes … */
const MOST_CHARACTERS = 16_000_000;
/** … and of one conversation. */
const MOST_OF_CONVERSATION = 2_000_000;
/** Turns of one conversation. */
const MOST_TURNS = 2_000;
/** Scopes. */
const SCOPES_WITH_HISTORIES = 10_000;

interface RememberedPath extends SaidPath {
  readonly turns: readonly (GivenTurn & { readonly characters: number })[];
}

/**
 * What was said in conversations that were read: a client that sends windows has the whole of it read with every turn. It is what is stored at
 * one version of the scope; a commit that takes nothing away makes it that of the next, with what it added, and all others end it.
 */
export class KnownHistories {
  readonly #scopes: VersionedScopes<ReadonlyMap<ConversationId, RememberedPath>>;

  constructor(mostCharacters = MOST_CHARACTERS) {
    this.#scopes = new VersionedScopes({ scopes: SCOPES_WITH_HISTORIES, size: mostCharacters });
  }

  /** Null: not known. */
  at(scope: Scope, version: StoredVersion, id: ConversationId): SaidPath | null {
    return this.#scopes.at(scope, version)?.get(id) ?? null;
  }

  /** A conversation was read at a version of its scope. */
  read(scope: Scope, version: StoredVersion, id: ConversationId, { head, turns }: SaidPath): void {
    const path = { head, turns: turns.map((turn) => ({ ...turn, characters: charactersOf(turn) })) };
    this.#keep(scope, version, new Map(this.#scopes.at(scope, version)).set(id, path), id);
  }

  /**
   * A compose took a scope to its next version.
   *
   * @param added the turns of a conversation that it stored, each continuing the one before; of one that is not known nothing is kept, as
   * most clients send their histories
   */
  composed(scope: Scope, before: StoredVersion | null, next: StoredVersion, added: SaidPath): void {
    const paths = new Map(this.#scopes.at(scope, before));
    const [first] = added.turns;
    const id = first?.turn.conversationId ?? null;
    const path = id === null ? undefined : paths.get(id);
    if (first === undefined || id === null || path === undefined) {
      this.committed(scope, before, next);
      return;
    }
    const { parent } = first.turn;
    const from = parent === null ? 0 : path.turns.findLastIndex(({ turn }) => turn.id === parent) + 1;
    const own = added.turns.map(({ turn, given }) => {
      const stored = { turn, given: given.map(asStored) };
      return { ...stored, characters: charactersOf(stored) };
    });
    if (parent !== null && from === 0) paths.delete(id);
    else paths.set(id, { head: added.head.map(asStored), turns: [...path.turns.slice(0, from), ...own] });
    this.#keep(scope, next, paths, id);
  }

  /** A commit that took nothing away has taken a scope to its next version. */
  committed(scope: Scope, before: StoredVersion | null, next: StoredVersion): void {
    this.#scopes.advance(scope, before, next);
  }

  /** Something of a scope was taken away. */
  ended(scope: Scope): void {
    this.#scopes.delete(scope);
  }

  /** After a conversation has grown: without it where it is too long. */
  #keep(scope: Scope, version: StoredVersion, paths: Map<ConversationId, RememberedPath>, id: ConversationId): void {
    const sizeOf = (path: RememberedPath | undefined) =>
      path === undefined ? 0 : path.turns.reduce((sum, { characters }) => sum + characters, 0);
    const turns = paths.get(id)?.turns.length ?? 0;
    if (sizeOf(paths.get(id)) > MOST_OF_CONVERSATION || turns > MOST_TURNS) paths.delete(id);
    const size = [...paths.values()].reduce((sum, path) => sum + sizeOf(path), 0);
    this.#scopes.set(scope, version, paths, size);
  }
}

/** What a turn takes in memory, in characters; a turn itself has some hundred numbers and digests. */
function charactersOf({ given }: GivenTurn): number {
  let characters = 1_000;
  for (const { content, ...others } of given) {
    characters += typeof content === "string" ? content.length : JSON.stringify(content ?? null).length;
    characters += JSON.stringify(others).length;
  }
  return characters;
}

/** A message as it would be read: a caller may change its own object, and JSON leaves some of it out. */
function asStored(message: ChatMessage): ChatMessage {
  const { role, content, ...others } = message;
  if (typeof content === "string" && Object.keys(others).length === 0) return { role, content };
  return JSON.parse(JSON.stringify(message)) as ChatMessage;
}

/** Conversations that are kept … */
const MOST_LOADED = 32;
/** … and the characters of one's records. */
const MOST_LOADED_CHARACTERS = 300_000;

interface Loaded {
  readonly version: StoredVersion;
  readonly id: ConversationId;
  readonly reading: TurnReading;
}

/**
 * The records of conversations that were read with their scopes, until the request that they were read for has committed: it may ask for
 * what was said in them.
 */
export class LoadedConversations {
  readonly #scopes = new VersionedScopes<Loaded>({ scopes: MOST_LOADED });

  /** A scope was loaded with a conversation's records. */
  loaded(scope: Scope, of: Loaded, records: readonly Pick<JournalRecord, "said">[]): void {
    if (records.reduce((sum, { said }) => sum + (said?.length ?? 0), 0) > MOST_LOADED_CHARACTERS) this.ended(scope);
    else this.#scopes.set(scope, of.version, of);
  }

  /** Null: not at hand. */
  at(scope: Scope, version: StoredVersion, id: ConversationId): TurnReading | null {
    const loaded = this.#scopes.at(scope, version);
    return loaded?.id === id ? loaded.reading : null;
  }

  /** Something of a scope was committed. */
  ended(scope: Scope): void {
    this.#scopes.delete(scope);
  }
}

/**
 * What this process knows of scopes as they are stored, so that it is neither read nor written again. Entries are valid for one scope
 * version. Our commits advance it; another process's commit invalidates them.
 */
export class KnownScopes {
  readonly sections: KnownSections;
  readonly rows = new KnownRows();
  readonly histories = new KnownHistories();
  readonly loaded = new LoadedConversations();

  constructor(parts: JournalParts) {
    this.sections = new KnownSections(parts);
  }

  /** A compose that `rows` got. */
  async composed(
    scope: Scope,
    { version }: CommitBase,
    { sections, restated, turn, given, head }: ComposeRecord["composition"],
    committed: Promise<StoredVersion>,
  ): Promise<StoredVersion> {
    this.loaded.ended(scope);
    const next = await committed;
    this.sections.committed(scope, version, next, sections);
    this.histories.composed(scope, version, next, { head, turns: [...restated, { turn, given }] });
    return next;
  }

  /** A commit that takes nothing away, and adds nothing but to the state. */
  async kept(scope: Scope, { version }: CommitBase, committed: Promise<StoredVersion>): Promise<StoredVersion> {
    this.loaded.ended(scope);
    const next = await committed;
    this.sections.committed(scope, version, next, []);
    this.rows.committed(scope, version, next);
    this.histories.committed(scope, version, next);
    return next;
  }

  /** A commit that takes something away: its texts do not stay in memory either. */
  async ended<T>(scope: Scope, committed: Promise<T>): Promise<T> {
    this.histories.ended(scope);
    this.loaded.ended(scope);
    return committed;
  }
}
