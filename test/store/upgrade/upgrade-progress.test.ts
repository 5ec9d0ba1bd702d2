import { expect, it } from "vitest";
import { type UpgradeEvent, UpgradeProgress } from "../../../src/store/upgrade/upgrade-progress.js";

/** What was told, and a clock that stands still. */
function watched() {
  const told: UpgradeEvent[] = [];
  const clock = { ms: 1_000 };
  const progress = new UpgradeProgress(
    (event) => told.push(event),
    () => clock.ms,
  );
  return { told, clock, progress };
}

it("tells of an upgrade when it begins, every few seconds, and when it is done", () => {
  const { told, clock, progress } = watched();
  progress.schemaBegins({ applied: 3, known: 17 });
  progress.schemaBegins({ applied: 3, known: 17 });
  clock.ms += 2_000;
  progress.scopesBegin(4);
  progress.moved();
  for (let step = 0; step < 110; step++) {
    clock.ms += 100;
    progress.working();
  }
  for (let scope = 0; scope < 3; scope++) progress.moved();
  clock.ms += 500;
  progress.done();
  expect(told).toEqual([
    { kind: "schema", schema: { applied: 3, known: 17 } },
    { kind: "moving", scopes: 0, of: 4, ms: 2_000 },
    { kind: "moving", scopes: 1, of: 4, ms: 7_000 },
    { kind: "moving", scopes: 1, of: 4, ms: 12_000 },
    { kind: "done", scopes: 4, ms: 13_500 },
  ]);
});

it("tells nothing of a file that is up to date", () => {
  const { told, clock, progress } = watched();
  clock.ms += 60_000;
  progress.done();
  expect(told).toEqual([]);
});
