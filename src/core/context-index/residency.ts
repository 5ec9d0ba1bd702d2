import type { ResidencyConfig, ResidencyModel } from "./residency-model.js";
import type { SharedCache } from "./shared-cache.js";
import { promptSlots } from "./slot-residency.js";

export type * from "./residency-model.js";

export const KEEPS_ALL: ResidencyModel = { expire: () => {}, limits: { kind: "all" } };

/** Throws a RangeError for a limit that is not above 0. */
export function residencyModel(config: ResidencyConfig): ResidencyModel {
  switch (config.kind) {
    case "all":
      return KEEPS_ALL;
    case "ttl":
      return timeToLive(config.ttlMs);
    case "capacity":
      return tokenCapacity(config.tokens);
    case "slots":
      return promptSlots(config.slots);
    case "ttl-and-capacity": {
      const models = [timeToLive(config.ttlMs), tokenCapacity(config.tokens)];
      return {
        limits: config,
        expire: (index, now) => {
          for (const model of models) model.expire(index, now);
        },
      };
    }
  }
}

/** What all users' prompts leave of one user's in an engine's cache, where that keeps things by `own` rules besides. */
export function sharedResidency(cache: SharedCache, own: ResidencyModel = KEEPS_ALL): ResidencyModel {
  return {
    expire(index, now) {
      own.expire(index, now);
      const since = cache.heldSince();
      if (since !== null) index.dropUnusedSince(since - 1);
    },
    get limits(): ResidencyConfig {
      const { capacity: tokens } = cache;
      if (tokens === Number.POSITIVE_INFINITY) return own.limits ?? { kind: "all" };
      return own.limits?.kind === "ttl"
        ? { kind: "ttl-and-capacity", ttlMs: own.limits.ttlMs, tokens }
        : { kind: "capacity", tokens };
    },
  };
}

/** Whether a prefix last used at `usedAt` is within the model's TTL; true under a model without one. Times in milliseconds. */
export function isWithinTtl({ limits }: ResidencyModel, usedAt: number, now: number): boolean {
  return limits === undefined || !("ttlMs" in limits) || now - usedAt < limits.ttlMs;
}

function timeToLive(ttlMs: number): ResidencyModel {
  requirePositive("ttlMs", ttlMs);
  return { limits: { kind: "ttl", ttlMs }, expire: (index, now) => index.dropUnusedSince(now - ttlMs) };
}

function tokenCapacity(tokens: number): ResidencyModel {
  requirePositive("tokens", tokens);
  return { limits: { kind: "capacity", tokens }, expire: (index) => index.dropToFit(tokens) };
}

function requirePositive(name: string, limit: number): void {
  if (!(limit > 0)) throw new RangeError(`${name} is ${limit}, not above 0`);
}
