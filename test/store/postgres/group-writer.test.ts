import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { StoreUnavailableError } from "../../../src/store/api/store.js";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import type { Connections } from "../../../src/store/postgres/connections.js";
import { GroupWriter } from "../../../src/store/postgres/group-writer.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

/** A server that holds every transaction until it is told to give up on it. */
function holdingServer() {
  const held: (() => void)[] = [];
  const connections: Pick<Connections, "write" | "observed"> = {
    write: () =>
      new Promise((_resolve, reject) => {
        held.push(() => reject(new StoreUnavailableError("full")));
      }),
    observed: (error) => error,
  };
  const key = randomBytes(32);
  return { held, writer: new GroupWriter(connections as Connections, new DigestSeal(() => key)) };
}

describe("groups of commits in PostgreSQL", () => {
  it("wait for the one under way, and for the second where both take long; each is what came meanwhile", async () => {
    const { held, writer } = holdingServer();
    const outcomes: string[] = [];
    const write = (user: string) =>
      writer.write([unitOf(scopeNamed(user), null, [composed(1)])]).catch(() => outcomes.push(user));
    const all = [write("a")];
    await pause(1);
    all.push(write("b"), write("c"));
    // Before any timer, however late this machine is.
    await new Promise(setImmediate);
    expect(held).toHaveLength(1);
    await pause(60);
    expect(held).toHaveLength(2);
    all.push(write("d"));
    await pause(60);
    expect(held).toHaveLength(2);
    held[1]?.();
    await Promise.all(all.slice(1, 3));
    expect(outcomes).toEqual(["b", "c"]);
    await pause(60);
    expect(held).toHaveLength(3);
    for (const give of held) give();
    await Promise.all(all);
    await writer.idle();
    expect(outcomes.sort()).toEqual(["a", "b", "c", "d"]);
  });
});
