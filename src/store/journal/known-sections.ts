import type { Digest, Scope } from "../../core/index.js";
import type { StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import { listInPages, readInPieces } from "./body-reading.js";
import type { JournalRecord, RecordKind } from "./journal-database.js";
import { decodedOf, type JournalParts } from "./journal-parts.js";
import { VersionedScopes } from "./versioned-scopes.js";

/** Kinds of records that name sections. */
const WITH_SECTIONS: readonly RecordKind[] = ["said", "composed", "forgotten", "withdrawn"];
/** Records that are looked at together: a section that comes back was mostly sent a short while ago. */
const AT_ONCE = 64;
/** Scopes whose sections are remembered, the last that were asked for … */
const MOST_SCOPES = 16;
/** … and the most sections of one: some 2 MB. A scope with more is read each time. */
const MOST_SECTIONS = 20_000;

/**
 * Which sections were ever sent in a scope. Records are read, newest first, until all that are asked for are found; so all of them where one
 * is not ours. What was read then is remembered for as long as no other process commits.
 */
export class KnownSections {
  readonly #remembered = new VersionedScopes<Set<SealedDigest>>({ scopes: MOST_SCOPES });

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
