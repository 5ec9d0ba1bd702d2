import type { ChatMessage, ConversationId, Scope } from "../../core/index.js";
import type { StoredVersion } from "../api/store.js";
import type { GivenTurn } from "./sharing.js";
import { VersionedScopes } from "./versioned-scopes.js";

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
    this.#scopes = new VersionedScopes({ scopes: MOST_SCOPES, size: mostCharacters });
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
