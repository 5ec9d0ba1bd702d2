import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RequestId, Scope } from "../../../src/core/index.js";
import {
  type AddedMessage,
  type MemorySource,
  MemorySourceError,
  type MemorySourceFailure,
  type MessageAddition,
} from "../../../src/memory/memory-source.js";
import { BATCH, MemoryWriter, queueOf } from "../../../src/service/records/memory-writer.js";
import { UserQueues } from "../../../src/service/scopes/user-queues.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import { conversationId, memoryId, NOW, scopeOf } from "../../store/composed-users.js";

const MINUTE = 60_000;
const ana = scopeOf("ana");

describe("the writer of waiting exchanges", () => {
  let store: Store;
  let now = NOW;
  let failure: MemorySourceFailure | null = null;
  /** What Mem0 has, addition by addition: the questions in it. */
  let added: string[][] = [];
  /** Awaited after Mem0 has kept an addition, and before it answers. */
  let answering: () => Promise<unknown> = async () => {};
  let deleted: string[] = [];
  let asked = 0;
  const faults: unknown[] = [];
  const questionsIn = (messages: readonly AddedMessage[]) =>
    messages.flatMap(({ role, content }) => (role === "user" ? [content] : []));
  const source = {
    name: "mem0",
    owned: false,
    async addMessages(_scope: Scope, { messages }: MessageAddition) {
      asked++;
      if (failure !== null) throw new MemorySourceError("mem0", failure);
      const questions = questionsIn(messages);
      if (questions.includes("bad")) throw new MemorySourceError("mem0", { kind: "refused", status: 422, body: "" });
      added.push(questions);
      await answering();
      return questions.map((text) => ({ id: memoryId(text), text }));
    },
    async delete(_scope: Scope, id: string) {
      deleted.push(id);
      return true;
    },
  } as unknown as MemorySource;
  const writer = () => new MemoryWriter(source, store, new UserQueues(), new AbortController().signal, () => now);
  const keep = async (question: string, more: Partial<MessageAddition> = {}, conversation = "trip", scope = ana) => {
    const messages = [
      { role: "user", content: question },
      { role: "assistant", content: `To ${question}` },
    ] as const;
    await store.begin(scope, now);
    const queue = queueOf(conversationId(conversation), null);
    const addition = { messages, ...more };
    const kept = await store.writes.keep(scope, { queue, addition, exchanges: 1, requestId: null, at: now });
    if (kept === null) throw new Error("it was not kept");
    return kept;
  };
  /** What a service writes in one go that is started and stopped. */
  const writeAll = () => writer().start((fault) => faults.push(fault))();

  beforeEach(() => {
    store = storeIn(openInMemory());
    [now, failure, added, deleted] = [NOW, null, [], []];
    answering = async () => {};
    faults.length = 0;
  });
  afterEach(async () => {
    expect(faults).toEqual([]);
    await store.close();
  });

  it("writes two together, and one once none came for two minutes", async () => {
    for (const n of [1, 2, 3]) await keep(`q${n}`);
    const queues = () => store.writes.due(now, BATCH, now - 2 * MINUTE);
    const [due] = await queues();
    await writer().write(due ?? (await keep("never")), BATCH);
    expect(added).toEqual([["q1", "q2"]]);
    now += 2 * MINUTE - 1;
    expect(await queues()).toEqual([]);
    now += 1;
    expect(await queues()).toMatchObject([{ scope: ana, queue: "conversation trip" }]);
  });

  it("does not count what is being added", async () => {
    await keep("q1");
    await keep("q2");
    const own = writer();
    const kept = await keep("q3");
    await Promise.all([own.write(kept, BATCH), own.write(kept, BATCH)]);
    expect(added).toEqual([["q1", "q2"]]);
  });

  it("writes what is left when it is stopped, each conversation in order", async () => {
    for (const n of [1, 2, 3, 4, 5, 6]) await keep(`q${n}`, {}, n % 2 === 0 ? "even" : "odd");
    await writeAll();
    expect(added.sort()).toEqual([["q1", "q3"], ["q2", "q4"], ["q5"], ["q6"]]);
  });

  it("puts only exchanges of the same options together, and none without extraction", async () => {
    await keep("a");
    await keep("b");
    await keep("c", { metadata: { topic: "food" } });
    await keep("d", { infer: false });
    await keep("e", { infer: false });
    await writeAll();
    expect(added).toEqual([["a", "b"], ["c"], ["d"], ["e"]]);
  });

  it("drops what Mem0 refuses, and nothing that it was sent with", async () => {
    for (const question of ["a", "bad", "c"]) await keep(question);
    await writeAll();
    expect(added).toEqual([["a"], ["c"]]);
    expect(await store.writes.due(now, 1, now)).toEqual([]);
  });

  it("keeps everything while Mem0 is down for an hour, asks it less and less often, and then adds all in order", async () => {
    failure = { kind: "unreachable", cause: "ECONNREFUSED" };
    const before = asked;
    const own = writer();
    const stop = own.start((fault) => faults.push(fault));
    for (let n = 0; n < 360; n++, now += 10_000) {
      const kept = await keep(`q${n}`, {}, `c${n % 3}`);
      if (kept.waiting >= BATCH) await own.write(kept, BATCH);
    }
    expect(asked - before).toBeGreaterThan(50);
    expect(asked - before).toBeLessThan(90);
    failure = null;
    now += MINUTE;
    await stop();
    for (const c of [0, 1, 2]) {
      const own = added.filter(([first]) => Number(first?.slice(1)) % 3 === c);
      expect(own.flat()).toEqual(Array.from({ length: 120 }, (_, n) => `q${3 * n + c}`));
      expect(own.map(({ length }) => length)).toEqual(Array.from({ length: 60 }, () => BATCH));
    }
  });

  it("is not overtaken by another one on the same database", async () => {
    const kept = await keep("q1");
    let go = () => {};
    answering = () => new Promise<void>((resolve) => (go = resolve));
    const first = writer().write(kept, 1);
    await vi.waitFor(() => expect(added).toHaveLength(1));
    await keep("q2");
    expect(await writer().write(kept, 1)).toBeNull();
    answering = async () => {};
    go();
    await first;
    expect(added).toEqual([["q1"], ["q2"]]);
  });

  it("takes back what was deleted while Mem0 was adding it, and adds the rest again", async () => {
    const kept = await keep("secret q1");
    await keep("q2");
    answering = async () => {
      answering = async () => {};
      await store.forget(ana, memoryId("m1"), { texts: ["secret"], isInSource: false, at: now });
    };
    await writer().write(kept, 1);
    expect(added).toEqual([["secret q1", "q2"], ["q2"]]);
    expect(deleted).toEqual(["secret q1", "q2"]);
  });

  it("writes what a client's window has left", async () => {
    const own = writer();
    const kept = await keep("q1");
    own.waits(kept, [{ role: "user", content: "q1" }]);
    const seen = (...contents: string[]) =>
      own.seen(
        ana,
        conversationId("trip"),
        contents.map((content) => ({ role: "user", content })),
      );
    seen("q1", "q2");
    await keep("q2");
    seen("q2", "q3");
    await vi.waitFor(() => expect(added).toEqual([["q1", "q2"]]));
  });

  it("is given none whose request is no longer stored", async () => {
    await store.begin(ana, now);
    const write = { queue: "", addition: {}, exchanges: 1, requestId: "gone" as RequestId, at: now };
    expect(await store.writes.keep(ana, write)).toBeNull();
    expect(await store.writes.keep(scopeOf("nobody"), { ...write, requestId: null })).toBeNull();
  });
});
