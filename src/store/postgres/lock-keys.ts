import { digestOf, type Scope } from "../../core/index.js";
import type { DigestSeal } from "../database/digest-seal.js";

/** Users whose bucket is in memory. */
const MOST_BUCKETS = 10_000;

/**
 * What users and scopes are locked and counted by: parts of keyed hashes of their names, so that they name nobody, and no tenant can choose
 * a user that collides with another's. Two scopes with one lock would only wait for each other.
 */
export class LockKeys {
  readonly #buckets = new Map<string, number>();

  constructor(private readonly seal: DigestSeal) {}

  /** 16 bits: see `DeletionCounts`. The same as a SQLite file with this key has. */
  bucketOf({ tenant, userId }: Pick<Scope, "tenant" | "userId">): number {
    const name = JSON.stringify([tenant, userId]);
    const known = this.#buckets.get(name);
    if (known !== undefined) return known;
    const bucket = this.#hashOf(name).readUInt16BE(0);
    if (this.#buckets.size >= MOST_BUCKETS) this.#buckets.clear();
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** 64 bits, in decimal digits. */
  lockOf({ tenant, userId, agentId }: Scope): string {
    return this.#hashOf(JSON.stringify([tenant, userId, agentId]))
      .readBigInt64BE(0)
      .toString();
  }

  #hashOf(name: string): Buffer {
    return Buffer.from(this.seal.seal(digestOf(name)), "base64url");
  }
}
