import { priceOf } from "../core/cost/prices.js";
import type { RecognisedFamily } from "../engines/upstream/engine-family.js";
import { engineFamilyFor } from "../service/base/memprefix-parts.js";
import type { Settings } from "./setting-list.js";
import { engineOf, leftOutSource, sourceOf } from "./settings.js";

/** What the service works with, a line each: printed after its address. */
export function startMessage(settings: Settings, recognised: RecognisedFamily | null, address: string): string[] {
  const lines: readonly (readonly [string, string])[] = [
    ...engineLines(settings, recognised),
    ["memories", memories(settings)],
    ["dashboard", `${address}/dashboard`],
  ];
  return lines.map(([what, says]) => `${what.padEnd(11)} ${says}`);
}

function engineLines(settings: Settings, recognised: RecognisedFamily | null): readonly (readonly [string, string])[] {
  const { upstreamUrl, engineFamily, engineCost } = settings;
  const of = engineOf(settings, recognised);
  const family = engineFamilyFor(of, null);
  const by =
    engineFamily !== undefined
      ? "as configured"
      : recognised === null
        ? "by its host"
        : recognised.name === null
          ? "the engine names no other"
          : "as the engine says";
  const provider = priceOf({ host: of.engineHost ?? null, family }, null)?.provider;
  const cost =
    engineCost !== undefined
      ? "as configured"
      : provider === undefined
        ? "a GPU's times, until measured"
        : `${provider}'s prices`;
  if (upstreamUrl === undefined)
    return [
      ["upstream", "none, so only /compose is served: MEMPREFIX_UPSTREAM_URL names the engine of /v1"],
      ["family", family],
      ["cost model", cost],
    ];
  const { origin, pathname } = new URL(upstreamUrl);
  return [
    ["upstream", `${origin}${pathname}`],
    ["family", `${family} (${by})`],
    ["cost model", cost],
  ];
}

function memories(settings: Settings): string {
  switch (sourceOf(settings)) {
    case "embedded":
      return "Mem0, embedded";
    case "hosted":
      return "Mem0's platform";
    case "rest":
      return `Mem0's server, ${new URL(settings.mem0Url ?? "").origin}`;
    case "none": {
      const install = leftOutSource(settings);
      return `none, so requests bring them${install === null ? "" : `; for the embedded Mem0: ${install}`}`;
    }
  }
}
