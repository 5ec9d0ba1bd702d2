import type { Scope } from "../../core/index.js";
import type { CommitBase, ComposeRecord, StoredVersion } from "../api/store.js";
import type { JournalParts } from "./journal-parts.js";
import { KnownHistories } from "./known-histories.js";
import { KnownRows } from "./known-rows.js";
import { KnownSections } from "./known-sections.js";
import { LoadedConversations } from "./loaded-conversations.js";

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

  /** A compose, of which `rows` was told. */
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
