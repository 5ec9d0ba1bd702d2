import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { WritingCall } from "../../../src/store/sqlite/journal-writer.js";
import { WriteGroups } from "../../../src/store/sqlite/sqlite-journal.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

/** Groups, and a writer that ends them when told to. */
function groups() {
  const sent: { readonly calls: readonly WritingCall[]; readonly end: (fails?: Error) => void }[] = [];
  const write = new WriteGroups(
    (calls) =>
      new Promise((resolve, reject) => {
        const end = (fails?: Error) =>
          fails === undefined ? resolve(calls.map((_, at) => ({ value: at }))) : reject(fails);
        sent.push({ calls, end });
      }),
  );
  return { write, sent, sizes: () => sent.map(({ calls }) => calls.length) };
}

const call = (said = "short"): WritingCall => ({
  name: "writeTogether",
  args: [[unitOf(scopeNamed("ana"), null, [composed(1, { said })])]],
});

it("go with everything that came since the last one, at most two at a time", async () => {
  const { write, sent, sizes } = groups();
  const first = [write.add(call()), write.add(call())];
  expect(sizes()).toEqual([]);
  await turn();
  expect(sizes()).toEqual([2]);
  void write.add(call());
  await turn();
  const waiting = [call(), call(), call()].map((one) => write.add(one));
  await turn();
  expect(sizes()).toEqual([2, 1]);
  sent[0]?.end();
  expect(await Promise.all(first)).toEqual([{ value: 0 }, { value: 1 }]);
  await turn();
  expect(sizes()).toEqual([2, 1, 3]);
  let isIdle = false;
  const idle = write.idle().then(() => {
    isIdle = true;
  });
  sent[1]?.end();
  await turn();
  expect(isIdle).toBe(false);
  sent[2]?.end();
  await Promise.all([idle, ...waiting]);
  await write.idle();
});

it("are bounded in calls and in what they write", async () => {
  const { write, sent, sizes } = groups();
  const many = Array.from({ length: 300 }, () => write.add(call()));
  const long = Array.from({ length: 3 }, () => write.add(call("x".repeat(3_000_000))));
  await turn();
  expect(sizes()).toEqual([256, 46]);
  for (let at = 0; at < sent.length; at++) {
    sent[at]?.end();
    await turn();
  }
  expect(sizes()).toEqual([256, 46, 1]);
  await Promise.all([...many, ...long]);
});

it("reject together where the writer fails, and the next one is sent", async () => {
  const { write, sent } = groups();
  const failing = [write.add(call()), write.add(call())];
  await turn();
  sent[0]?.end(new Error("gone"));
  for (const one of failing) await expect(one).rejects.toThrow("gone");
  const next = write.add(call());
  await turn();
  sent[1]?.end();
  expect(await next).toEqual({ value: 0 });
});
