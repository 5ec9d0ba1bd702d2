import { digestOf, LruMap, type Scope } from "../../core/index.js";
import type { DigestSeal } from "../database/digest-seal.js";

/** Users whose bucket is in memory, and scopes whose lock is. */
const MOST_KEYS = 10_000;

/**
 * What users and scopes are locked and counted by: parts of keyed hashes of their names, so that they name nobody, and no tenant can choose
 * a user that collides with another's. Two scopes with one lock would only wait for each other.
 */
export class LockKeys {
  readonly #buckets = new LruMap<string, number>(MOST_KEYS);
  readonly #locks = new LruMap<string, string>(MOST_KEYS);

  constructor(private readonly seal: DigestSeal) {}

  /** 16 bits: see `DeletionCounts`. The same as a SQLite file with this key has. */
  bucketOf({ tenant, userId }: Pick<Scope, "tenant" | "userId">): number {
    return remembered(this.#buckets, JSON.stringify([tenant, userId]), (name) => this.#hashOf(name).readUInt16BE(0));
  }

  /** 64 bits, in decimal digits. */
  lockOf({ tenant, userId, agentId }: Scope): string {
    return remembered(this.#locks, JSON.stringify([tenant, userId, agentId]), (name) =>
      this.#hashOf(name).readBigInt64BE(0).toString(),
    );
  }

  #hashOf(name: string): Buffer {
    return Buffer.from(this.seal.seal(digestOf(name)), "base64url");
  }
}

function remembered<T>(keys: LruMap<string, T>, name: string, make: (name: string) => T): T {
  const known = keys.get(name);
  if (known !== undefined) return known;
  const made = make(name);
  keys.set(name, made);
  return made;
}
