import { expect, it } from "vitest";
import { upgradeLine } from "../../src/cli/upgrade-lines.js";

it("an upgrade says what it does, how far it is and how long it took", () => {
  expect(
    [
      { kind: "schema", schema: { applied: 10, known: 17 } } as const,
      { kind: "moving", scopes: 3, of: 40, ms: 5_040 } as const,
      { kind: "done", scopes: 40, ms: 61_000 } as const,
    ].map(upgradeLine),
  ).toEqual([
    "upgrading the database from schema 10 to 17; this blocks until it is done",
    "upgrading the database: 3 of 40 scopes moved, 5.0 s",
    "the database is upgraded: 40 scopes moved, 61.0 s",
  ]);
});
