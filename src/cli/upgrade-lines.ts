import type { UpgradeEvent } from "../store/upgrade/upgrade-progress.js";

/** What an upgrade says of itself, in a line that names no user. */
export function upgradeLine(event: UpgradeEvent): string {
  switch (event.kind) {
    case "schema":
      return `upgrading the database from schema ${event.schema.applied} to ${event.schema.known}; this blocks until it is done`;
    case "moving":
      return `upgrading the database: ${event.scopes} of ${event.of} scopes moved, ${secondsOf(event.ms)} s`;
    case "done":
      return `the database is upgraded: ${event.scopes} scopes moved, ${secondsOf(event.ms)} s`;
  }
}

/** Says it on standard error, as commands do. */
export function upgradeOnStandardError(event: UpgradeEvent): void {
  process.stderr.write(`memstem: ${upgradeLine(event)}\n`);
}

function secondsOf(ms: number): string {
  return (ms / 1_000).toFixed(1);
}
