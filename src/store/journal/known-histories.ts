import { type ChatMessage, type ConversationId, type Scope, UseOrderMap } from "../../core/index.js";
import { isSameVersion, type StoredVersion } from "../api/store.js";
import { scopeName } from "./known-sections.js";
import type { GivenTurn } from "./sharing.js";

/** Characters of messages that are remembered, of all scopes … */
const MOST_CHARACTERS = 16_000_000;
/** … and of one conversation. */
const MOST_OF_CONVERSATION = 2_000_000;
/** Turns of one conversation. */
const MOST_TURNS = 2_000;
/** Scopes. */
const MOST_SCOPES = 10_000;

/** What was said in a conversation from its epoch's first turn to its newest one; nothing of it was erased. */
export interface SaidPath {
  /** The instructions of the newest prompt. */
  readonly head: readonly ChatMessage[];
  /** First to last. */
  readonly turns: readonly GivenTurn[];
}

interface RememberedPath {
  head: readonly ChatMessage[];
  readonly turns: GivenTurn[];
  characters: number;
}

/** Conversations of a scope at a version, those used last at the end. */
interface RememberedScope {
  version: StoredVersion;
  readonly paths: Map<ConversationId, RememberedPath>;
}

/**
 * What was said in conversations that were read: a client that sends windows has the whole of it read with every turn. It is what is stored at
 * one version of the scope; a commit that takes nothing away makes it that of the next, with what it added, and all others end it. In memory
 * only, bounded, the scope that was used longest ago first to go.
 */
export class KnownHistories {
  readonly #scopes = new UseOrderMap<string, RememberedScope>();
  #characters = 0;

  constructor(private readonly mostCharacters = MOST_CHARACTERS) {}

  /** Null: not known. */
  at(scope: Scope, version: StoredVersion, id: ConversationId): SaidPath | null {
    const remembered = this.#at(scopeName(scope), version);
    const path = remembered?.paths.get(id);
    if (remembered === undefined || path === undefined) return null;
    remembered.paths.delete(id);
    remembered.paths.set(id, path);
    return path;
  }

  /** A conversation was read at a version of its scope. */
  read(scope: Scope, version: StoredVersion, id: ConversationId, { head, turns }: SaidPath): void {
    const name = scopeName(scope);
    const remembered = this.#at(name, version) ?? this.#begun(name, version);
    this.#dropPath(remembered, id);
    const path = { head, turns: [...turns], characters: turns.reduce((sum, turn) => sum + charactersOf(turn), 0) };
    remembered.paths.set(id, path);
    this.#characters += path.characters;
    this.#bound(remembered, id);
  }

  /**
   * A compose took a scope to its next version.
   *
   * @param added the turns of a conversation that it stored, each continuing the one before; of one that is not known nothing is kept, as
   * most clients send their histories
   */
  composed(scope: Scope, before: StoredVersion | null, next: StoredVersion, added: SaidPath): void {
    this.committed(scope, before, next);
    const remembered = this.#scopes.get(scopeName(scope));
    const [first] = added.turns;
    const id = first?.turn.conversationId ?? null;
    const path = id === null ? undefined : remembered?.paths.get(id);
    if (first === undefined || id === null || remembered === undefined || path === undefined) return;
    const { parent } = first.turn;
    const from = parent === null ? 0 : path.turns.findLastIndex(({ turn }) => turn.id === parent) + 1;
    if (parent !== null && from === 0) {
      this.#dropPath(remembered, id);
      return;
    }
    for (const left of path.turns.splice(from)) this.#count(path, -charactersOf(left));
    for (const { turn, given } of added.turns) {
      const own = { turn, given: given.map(asStored) };
      path.turns.push(own);
      this.#count(path, charactersOf(own));
    }
    path.head = added.head.map(asStored);
    this.#bound(remembered, id);
  }

  /** A commit that took nothing away has taken a scope to its next version. */
  committed(scope: Scope, before: StoredVersion | null, next: StoredVersion): void {
    const name = scopeName(scope);
    const remembered = before === null ? undefined : this.#at(name, before);
    if (remembered === undefined) this.#drop(name);
    else remembered.version = next;
  }

  /** Something of a scope was taken away. */
  ended(scope: Scope): void {
    this.#drop(scopeName(scope));
  }

  #at(name: string, version: StoredVersion): RememberedScope | undefined {
    const remembered = this.#scopes.get(name);
    if (remembered === undefined || !isSameVersion(remembered.version, version)) return undefined;
    this.#scopes.use(name);
    return remembered;
  }

  #begun(name: string, version: StoredVersion): RememberedScope {
    this.#drop(name);
    const begun = { version, paths: new Map<ConversationId, RememberedPath>() };
    this.#scopes.set(name, begun);
    return begun;
  }

  #count(path: RememberedPath, characters: number): void {
    path.characters += characters;
    this.#characters += characters;
  }

  /** After a path has grown: without it where it is too long, and without others where all are. */
  #bound(remembered: RememberedScope, id: ConversationId): void {
    const { turns = [], characters = 0 } = remembered.paths.get(id) ?? {};
    if (characters > MOST_OF_CONVERSATION || turns.length > MOST_TURNS) this.#dropPath(remembered, id);
    const isOver = () => this.#characters > this.mostCharacters || this.#scopes.size > MOST_SCOPES;
    for (let name = this.#scopes.oldest; name !== undefined && isOver(); name = this.#scopes.oldest) {
      const oldest = this.#scopes.get(name);
      const [path] = oldest?.paths.keys() ?? [];
      if (oldest === undefined || path === undefined) this.#drop(name);
      else this.#dropPath(oldest, path);
    }
  }

  #dropPath({ paths }: RememberedScope, id: ConversationId): void {
    this.#characters -= paths.get(id)?.characters ?? 0;
    paths.delete(id);
  }

  #drop(name: string): void {
    for (const { characters } of this.#scopes.get(name)?.paths.values() ?? []) this.#characters -= characters;
    this.#scopes.delete(name);
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
