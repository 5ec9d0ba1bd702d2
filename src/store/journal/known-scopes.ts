import { type ChatMessage, type ConversationId, type Digest, LruMap, type Scope, scopeName } from "../../core/index.js";
import { type CommitBase, type ComposeRecord, isSameVersion, type StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type { JournalRecord, RecordKind } from "./journal-database.js";
import { decodedOf, type JournalParts, listInPages, readInPieces } from "./journal-parts.js";
import type { GivenTurn } from "./said-codec.js";
import type { SaidPath } from "./turn-reading.js";

/** Bounds of what is known. */
export interface KnownBounds {
  readonly scopes: number;
  /** Characters of all scopes, each digest counted as {@link DIGEST_CHARACTERS}: twice as many bytes. */
  readonly characters: number;
  /** Shared rows of one scope. */
  readonly rows: number;
  /** Sections of one scope; one with more is read each time. */
  readonly sections: number;
}

const MOST: KnownBounds = { scopes: 10_000, characters: 30_000_000, rows: 20_000, sections: 20_000 };
/** What one digest takes in a set. */
const DIGEST_CHARACTERS = 50;
/** Characters and turns of one conversation's history. */
const MOST_OF_CONVERSATION = 2_000_000;
const MOST_TURNS = 2_000;
/** Kinds of records that name sections. */
const WITH_SECTIONS: readonly RecordKind[] = ["said", "composed", "forgotten", "withdrawn"];
/** Records that are read together: a section that comes back was mostly sent a short while ago. */
const AT_ONCE = 64;

interface RememberedPath extends SaidPath {
  readonly turns: readonly (GivenTurn & { readonly characters: number })[];
}

/** What is known of one scope at one version of it. */
interface KnownScope {
  /**
   * Keys of shared rows that are stored, those used last at the end: they are not written again with every prompt that refers to them. What
   * removes rows makes another version, and a commit on a version that is not the stored one is rejected; so no record refers to a row
   * that was removed.
   */
  readonly rows: Set<Digest>;
  /** Every section that was sent; null: not read. */
  readonly sections: Set<SealedDigest> | null;
  /** What was said in conversations that were read: a client that sends windows has the whole of it read with every turn. */
  readonly paths: ReadonlyMap<ConversationId, RememberedPath>;
}

const NOTHING: KnownScope = { rows: new Set(), sections: null, paths: new Map() };

/**
 * What this process knows of scopes as they are stored, so that it is neither read nor written again. Entries are valid for one scope
 * version. Our commits advance it; another process's commit invalidates them. The scope that was used longest ago goes first.
 */
export class KnownScopes {
  readonly #scopes = new LruMap<
    string,
    { version: StoredVersion; readonly known: KnownScope; readonly size: number }
  >();
  #size = 0;

  constructor(
    private readonly parts: JournalParts,
    private readonly most: KnownBounds = MOST,
  ) {}

  /** The shared rows that are known to be stored at a version. */
  rowsAt(scope: Scope, version: StoredVersion | null): ReadonlySet<Digest> {
    return this.#at(scope, version).rows;
  }

  /** What was said in a conversation up to its newest turn; null: not known. */
  pathAt(scope: Scope, version: StoredVersion, id: ConversationId): SaidPath | null {
    return this.#at(scope, version).paths.get(id) ?? null;
  }

  /** A conversation was read, at a version of its scope. */
  read(scope: Scope, version: StoredVersion, id: ConversationId, { head, turns }: SaidPath): void {
    const known = this.#at(scope, version);
    const path = { head, turns: turns.map((turn) => ({ ...turn, characters: charactersOf(turn) })) };
    this.#set(scope, version, { ...known, paths: withPath(known.paths, id, path) });
  }

  /**
   * See `Store.knownSections`. Records are read, newest first, until all that are asked for are found; so all of them where one is not ours.
   * Those are remembered then.
   */
  async sectionsAmong(scope: Scope, version: StoredVersion, sections: readonly Digest[]): Promise<readonly Digest[]> {
    const { digests } = this.parts;
    const wanted = new Set(sections.map((section) => digests.seal(section)));
    const found = this.#at(scope, version).sections ?? (await this.#readSections(scope, version, wanted));
    return sections.filter((section) => found.has(digests.seal(section)));
  }

  /** A compose, with the shared rows that its record refers to. */
  async composed(
    scope: Scope,
    { version }: CommitBase,
    { sections, restated, turn, given, head }: ComposeRecord["composition"],
    { committed, used }: { readonly committed: Promise<StoredVersion>; readonly used: Iterable<Digest> },
  ): Promise<StoredVersion> {
    const next = await committed;
    const known = this.#at(scope, version);
    // That of an unknown scope is shared.
    const rows = known.rows.size === 0 ? new Set<Digest>() : known.rows;
    for (const row of used) {
      rows.delete(row);
      rows.add(row);
    }
    for (const oldest of rows) {
      if (rows.size <= this.most.rows) break;
      rows.delete(oldest);
    }
    for (const section of sections) known.sections?.add(this.parts.digests.seal(section));
    const isTooMany = (known.sections?.size ?? 0) > this.most.sections;
    const paths = pathsAfter(known.paths, head, [...restated, { turn, given }]);
    this.#set(scope, next, { rows, sections: isTooMany ? null : known.sections, paths });
    return next;
  }

  /** A commit that takes nothing away, and adds nothing but to the state. */
  async kept(scope: Scope, { version }: CommitBase, committed: Promise<StoredVersion>): Promise<StoredVersion> {
    const next = await committed;
    const entry = this.#scopes.peek(scopeName(scope));
    if (entry !== undefined && isSameVersion(entry.version, version)) entry.version = next;
    else this.#drop(scopeName(scope));
    return next;
  }

  /** A commit that takes something away: its texts do not stay in memory either. */
  async ended<T>(scope: Scope, committed: Promise<T>): Promise<T> {
    this.#drop(scopeName(scope));
    return committed;
  }

  /** Counts as a use. */
  #at(scope: Scope, version: StoredVersion | null): KnownScope {
    const name = scopeName(scope);
    const entry = this.#scopes.peek(name);
    if (entry === undefined || version === null || !isSameVersion(entry.version, version)) return NOTHING;
    this.#scopes.get(name);
    return entry.known;
  }

  #set(scope: Scope, version: StoredVersion, known: KnownScope): void {
    const name = scopeName(scope);
    const size = sizeOf(known);
    this.#drop(name);
    if (size === 0) return;
    this.#scopes.set(name, { version, known, size });
    this.#size += size;
    const { scopes, characters } = this.most;
    while (this.#size > characters || this.#scopes.size > scopes) this.#drop(this.#scopes.oldest ?? name);
  }

  #drop(name: string): void {
    this.#size -= this.#scopes.peek(name)?.size ?? 0;
    this.#scopes.delete(name);
  }

  /** Reads sections until all that are wanted are among them; else remembers them, as those are all that there are. */
  async #readSections(
    scope: Scope,
    version: StoredVersion,
    wanted: ReadonlySet<SealedDigest>,
  ): Promise<ReadonlySet<SealedDigest>> {
    const { database } = this.parts;
    const { sections: most } = this.most;
    const missing = new Set(wanted);
    const found = new Set<SealedDigest>();
    const pages = listInPages(database, version.scopeId, { kinds: WITH_SECTIONS, newestFirst: true }, AT_ONCE);
    for await (const keys of pages) {
      const seqs = keys.map(({ seq }) => seq);
      await readInPieces(database, seqs, (record) => {
        for (const section of this.#sectionsIn(record)) {
          missing.delete(section);
          if (found.size <= most || wanted.has(section)) found.add(section);
        }
      });
      if (missing.size === 0) return found;
    }
    // Other processes may have committed while this read: then there are more, and the version is not the stored one any more.
    if (found.size <= most) this.#set(scope, version, { ...this.#at(scope, version), sections: found });
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

/**
 * Paths after a compose that stored some turns of one conversation, each of which continues the one before. Of a conversation that is not
 * known nothing is kept, as most clients send their histories.
 */
function pathsAfter(
  paths: KnownScope["paths"],
  head: readonly ChatMessage[],
  turns: readonly GivenTurn[],
): KnownScope["paths"] {
  const [first] = turns;
  const id = first?.turn.conversationId ?? null;
  const path = id === null ? undefined : paths.get(id);
  if (first === undefined || id === null || path === undefined) return paths;
  const { parent } = first.turn;
  const from = parent === null ? 0 : path.turns.findLastIndex(({ turn }) => turn.id === parent) + 1;
  const own = turns.map(({ turn, given }) => {
    const stored = { turn, given: given.map(asStored) };
    return { ...stored, characters: charactersOf(stored) };
  });
  const isContinued = parent === null || from > 0;
  return withPath(
    paths,
    id,
    isContinued ? { head: head.map(asStored), turns: [...path.turns.slice(0, from), ...own] } : null,
  );
}

/** Paths with one; without it where it is too long. */
function withPath(paths: KnownScope["paths"], id: ConversationId, path: RememberedPath | null): KnownScope["paths"] {
  const all = new Map(paths);
  all.delete(id);
  if (path !== null && sizeOfPath(path) <= MOST_OF_CONVERSATION && path.turns.length <= MOST_TURNS) all.set(id, path);
  return all;
}

function sizeOf({ rows, sections, paths }: KnownScope): number {
  let size = DIGEST_CHARACTERS * (rows.size + (sections?.size ?? 0));
  // A scope without sections is known to have none.
  if (sections !== null) size += DIGEST_CHARACTERS;
  for (const path of paths.values()) size += sizeOfPath(path);
  return size;
}

function sizeOfPath({ turns }: RememberedPath): number {
  return turns.reduce((sum, { characters }) => sum + characters, 0);
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
