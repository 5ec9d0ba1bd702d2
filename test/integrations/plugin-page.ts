/* What the plugins of agents, Hermes and OpenClaw, are tried with. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, samplesOf } from "../docs/pages.js";

/** The first commands of a plugin's page: what installs its agent, and what sets the plugin up. */
export function firstCommands(path: string): readonly string[] {
  const [first] = samplesOf({ path, text: readFileSync(join(ROOT, path), "utf8") });
  return (first?.text ?? "").trim().split("\n");
}

/** What is at memprefix's address by mistake: its status and answer, and what a plugin says of it whose setting names the address. */
export function strangers(setting: string) {
  const refusal = JSON.stringify({ title: "Invalid request", errors: [{ field: "history", message: "unknown" }] });
  const foreign = `answered, but not as memprefix does: start a current memprefix there, or set ${setting}`;
  return [
    ["is no memprefix", 200, "<html>", foreign],
    ["does not know a field", 422, refusal, "refused to compose (422): history: unknown"],
  ] as const;
}
