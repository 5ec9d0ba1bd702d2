import { priceOf } from "../core/cost/prices.js";
import type { RecognisedFamily } from "../engines/upstream/engine-family.js";
import { engineFamilyFor } from "../service/base/memprefix-parts.js";
import type { Settings } from "./setting-list.js";
import { engineOf, leftOutSource, sourceOf } from "./settings.js";

/** What the service works with, a line each: printed after its address. */
export function startMessage(settings: Settings, recognised: RecognisedFamily | null, address: string): string[] {
  const { upstreamUrl, engineCost } = settings;
  const engine = engineOf(settings, recognised);
  const family = engineFamilyFor(engine, null);
  const { provider } = priceOf({ host: engine.engineHost ?? null, family }, null) ?? {};
  const prices = provider === undefined ? "a GPU's times, until measured" : `${provider}'s prices`;
  const lines: readonly (readonly [string, string])[] = [
    ["upstream", upstream(upstreamUrl)],
    ["family", upstreamUrl === undefined ? family : `${family} (${sourceOfFamily(settings, recognised)})`],
    ["cost model", engineCost === undefined ? prices : "as configured"],
    ["memories", memories(settings)],
    ["dashboard", `${address}/dashboard`],
  ];
  return lines.map(([what, says]) => `${what.padEnd(11)} ${says}`);
}

/** Without credentials. */
function upstream(url: string | undefined): string {
  if (url === undefined) return "none, so only /compose is served: MEMPREFIX_UPSTREAM_URL names the engine of /v1";
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function sourceOfFamily({ engineFamily }: Settings, recognised: RecognisedFamily | null): string {
  if (engineFamily !== undefined) return "as configured";
  if (recognised === null) return "by its host";
  return recognised.name === null ? "the engine names no other" : "as the engine says";
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
