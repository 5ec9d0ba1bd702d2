import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChatMessage, ConversationId, MemoryId, UserId } from "../../../src/core/index.js";
import { StaleScopeError, type Store } from "../../../src/store/api/store.js";
import { DrivenStore, type Said } from "../journal/driven-store.js";
import { composeInto, id, recordFor, scopeOf } from "./stored-compose.js";

/** Two instances on one database, and what it has in its rows. */
export interface SharedStores {
  readonly one: Store;
  readonly two: Store;
  /** What records say, and the rows that they share. */
  texts(): Promise<{ readonly said: readonly string[]; readonly shared: readonly string[] }>;
  /** Closes both, and removes the database. */
  end(): Promise<void>;
}

const ana = scopeOf("ana");
const LONG_AGO = 1_000;
const LATER = 1_000_000;
const filler = (length: number) => "and so on, and on, ".repeat(Math.ceil(length / 19)).slice(0, length);
const lengthOf = (texts: readonly string[]) => texts.reduce((length, text) => length + text.length, 0);

/** An exchange that was had before. */
function exchange(nth: number, length = 200): readonly ChatMessage[] {
  return [
    { role: "user", content: `Question ${nth}? ${filler(length)}` },
    { role: "assistant", content: `Answer ${nth}. ${filler(length)}` },
  ];
}

export const exchanges = (count: number, length?: number) =>
  Array.from({ length: count }, (_, at) => exchange(at, length)).flat();

/** A prompt behind messages that its client sends along. */
export function behind(told: readonly ChatMessage[], more: Partial<Said> & Pick<Said, "requestId">): Said {
  return {
    ...{ conversationId: null, system: "Be kind.", worker: null, memories: [], at: LATER, history: "told", told },
    question: `What about ${more.requestId}?`,
    ...more,
  };
}

/** How a store keeps messages that several prompts have. */
export function describeSharedMessages(name: string, open: () => Promise<SharedStores>): void {
  describe(`messages that come again: ${name}`, () => {
    let stores: SharedStores;
    let one: DrivenStore;
    let two: DrivenStore;
    beforeEach(async () => {
      stores = await open();
      [one, two] = [new DrivenStore(stores.one), new DrivenStore(stores.two)];
    });
    afterEach(() => stores.end());

    const givenIn = async (store: Store, requestId: string) =>
      (await store.findRequest(ana, id(requestId)))?.turns.flatMap(({ given }) => given);

    it.each([
      ["a window that slides over a conversation", "c", 12],
      ["a window without a conversation", null, 12],
      ["a history that every prompt has", null, Number.POSITIVE_INFINITY],
    ])("are stored twice at most: %s", async (_, conversation, window) => {
      const isSliding = Number.isFinite(window);
      const told = isSliding ? [] : [...exchanges(20, 2_000)];
      const said: string[] = [];
      for (let turn = 0; turn < 40; turn++) {
        const asked = behind(told.slice(isSliding ? -window : 0), {
          requestId: `r${turn}`,
          question: isSliding ? `Question ${turn}? ${filler(2_000)}` : `Question ${turn}?`,
          conversationId: conversation,
        });
        await one.compose(ana, asked);
        said.push(asked.question);
        if (!isSliding) continue;
        told.push(
          { role: "user", content: asked.question },
          { role: "assistant", content: `${turn}. ${filler(2_000)}` },
        );
      }
      const texts = await stores.texts();
      const once =
        lengthOf(said) + lengthOf((isSliding ? told.slice(1) : told).map(({ content }) => content as string));
      // Besides, each prompt has its answer, and 46 characters for each message that it refers to.
      expect(lengthOf([...texts.said, ...texts.shared])).toBeLessThan(2 * once + 40 * (1_500 + 46 * 40));
      for (const requestId of ["r5", "r39"]) {
        const asked = await givenIn(stores.two, requestId);
        expect(asked?.at(-1)?.content).toMatch(new RegExp(`^Question ${requestId.slice(1)}\\?`));
        expect(asked).toHaveLength(isSliding ? Math.min(2 * Number(requestId.slice(1)), window) + 1 : 41);
      }
    });

    it("stay as they were given, whatever is the order of their fields", async () => {
      const question = `Is it so? ${filler(100)}`;
      const call = { type: "function", id: "c1", function: { arguments: '{"b":1,"a":2}', name: "look" } };
      const forms: readonly (readonly ChatMessage[])[] = [
        [{ role: "user", content: question }],
        [{ content: question, role: "user" }],
        [{ role: "user", content: question, name: "ana" }],
        [{ name: "ana", role: "user", content: question }],
        [{ role: "assistant", content: null, tool_calls: [call] }],
        [{ tool_calls: [call], content: null, role: "assistant" }],
        [{ role: "user", content: [{ text: question, type: "text" }] }],
      ];
      const told = forms.map((form) => [...form, ...exchange(1)]);
      for (const [at, messages] of told.entries()) await one.compose(ana, behind(messages, { requestId: `r${at}` }));
      for (const [at, messages] of told.entries())
        expect(JSON.stringify((await givenIn(stores.two, `r${at}`))?.slice(0, -1))).toBe(JSON.stringify(messages));
    });

    it("are erased from every turn at once, in all instances, and come back only where they are said again", async () => {
      const quoting = { role: "user", content: `They say that Ana likes green tea. ${filler(100)}` };
      const told = [quoting, ...exchanges(3)];
      const memories = [{ id: "m1", text: "Ana likes green tea" }];
      await one.compose(ana, behind(told, { requestId: "r1", memories }));
      await two.compose(ana, behind(told, { requestId: "r2" }));
      await one.compose(ana, behind(told, { requestId: "r3", conversationId: "c", history: "told" }));
      expect((await givenIn(stores.two, "r3"))?.[0]).toEqual(quoting);
      expect((await stores.texts()).shared.filter((text) => text.includes("green tea"))).toHaveLength(1);

      await two.forget(ana, "m1", LATER);
      const after = await stores.texts();
      expect([...after.said, ...after.shared].filter((text) => text.includes("green tea"))).toEqual([]);
      for (const store of [stores.one, stores.two]) {
        for (const requestId of ["r1", "r2", "r3"]) expect(await store.findRequest(ana, id(requestId))).toBeNull();
        expect(await store.findHistory(ana, "c" as ConversationId)).toMatchObject({ isWhole: false });
      }
      // Who repeats a request says the message itself.
      const again = await stores.one.findRequest(ana, id("r2"), told);
      expect(again?.turns.flatMap(({ given }) => given).slice(0, -1)).toEqual(told);

      // Of the instance that did not forget, which knew the row as stored.
      await one.compose(ana, behind(told, { requestId: "r4" }));
      expect((await givenIn(stores.two, "r4"))?.[0]).toEqual(quoting);
      for (const requestId of ["r1", "r2", "r3"]) expect(await stores.two.findRequest(ana, id(requestId))).toBeNull();
      const [exported] = (await stores.two.exportUser("default", "ana" as UserId, pause)).scopes;
      const given = exported?.tables["turns"]?.map((turn) => (turn["given"] as unknown[])[0]);
      expect(given).toEqual([null, null, null, quoting]);
    });

    it("are missing nowhere, where one instance forgets while another composes behind what it knows as stored", async () => {
      const told = [{ role: "user", content: `They say that Ana likes green tea. ${filler(100)}` }, ...exchanges(3)];
      const texts = told.map(({ content }) => content as string);
      const asked = (requestId: string) => ({ requestId, question: "And?", memories: {}, history: texts });
      await composeInto(stores.one, ana, { ...asked("r1"), memories: { m1: "Ana likes green tea" } });
      const known = await composeInto(stores.one, ana, asked("r2"));
      const planned = await recordFor(stores.one, ana, asked("r3"));
      await two.forget(ana, "m1", LATER);
      const { deletions } = await stores.one.loadScope(ana);
      await expect(stores.one.commitCompose(ana, { version: known, deletions }, planned.record)).rejects.toBeInstanceOf(
        StaleScopeError,
      );
      await composeInto(stores.one, ana, asked("r3"));
      expect((await givenIn(stores.two, "r3"))?.map(({ content }) => content)).toEqual([...texts, "And?"]);
    });

    it("are missing nowhere, where one instance expires, or takes back, what another knows as stored", async () => {
      const told = exchanges(3);
      await one.compose(ana, behind(told, { requestId: "old", at: LONG_AGO }));
      await one.compose(ana, behind([], { requestId: "new", history: "none" }));
      await two.expire(ana, LATER - 1);
      expect((await stores.texts()).shared.filter((text) => text.includes("Question 1?"))).toEqual([]);
      await one.compose(ana, behind(told, { requestId: "r1" }));
      expect(await givenIn(stores.two, "r1")).toHaveLength(7);
      await two.withdraw(ana, "r1");
      expect((await stores.texts()).shared.filter((text) => text.includes("Question 1?"))).toEqual([]);
      await one.compose(ana, behind(told, { requestId: "r2" }));
      expect(await givenIn(stores.two, "r2")).toHaveLength(7);
    });

    it("are missing nowhere, whatever two instances do at once", async () => {
      const memories = Array.from({ length: 6 }, (_, at) => ({ id: `m${at}`, text: `Ana likes tea number ${at}.` }));
      const history = exchanges(12).map((message, at) => {
        const quoted = at % 4 === 2 ? ` ${memories[Math.floor(at / 4)]?.text}` : "";
        return { ...message, content: `${message.content}${quoted}` };
      });
      const work = fc.record({
        what: fc.constantFrom("compose", "compose", "compose", "forget", "withdraw", "expire"),
        from: fc.nat({ max: 12 }),
        isTalk: fc.boolean(),
      });
      let composed = 0;
      let [stored, outdated] = [0, 0];
      const rounds = fc.asyncProperty(
        fc.array(fc.tuple(work, work), { minLength: 12, maxLength: 16 }),
        async (list) => {
          const told = new Map<string, readonly ChatMessage[]>();
          const forgotten = new Set<string>();
          const compose = async (by: DrivenStore, from: number, isTalk: boolean, at: number) => {
            const requestId = `r${++composed}`;
            const window = history.slice(from, from + 12);
            const asked = behind(window, { requestId, memories, at, conversationId: isTalk ? `c${from}` : null });
            await by.compose(ana, asked);
            told.set(requestId, window);
          };
          await compose(one, 0, false, LATER);
          for (const [round, works] of list.entries()) {
            const done = await Promise.allSettled(
              works.map(async ({ what, from, isTalk }, nth) => {
                const by = nth === 0 ? one : two;
                if (what === "compose") return compose(by, from, isTalk, LATER + round);
                const memory = `m${from % 6}`;
                if (what === "forget") return by.forget(ana, memory, LATER).then(() => forgotten.add(memory));
                if (what === "withdraw") return by.withdraw(ana, `r${composed - from}`);
                return by.expire(ana, LATER + round - from);
              }),
            );
            for (const outcome of done) {
              if (outcome.status === "fulfilled") continue;
              expect(outcome.reason, String(outcome.reason?.cause)).toBeInstanceOf(StaleScopeError);
              outdated++;
              one.drop();
              two.drop();
            }
            const erased = memories.filter((memory) => forgotten.has(memory.id)).map(({ text }) => text);
            for (const [requestId, window] of told) {
              if ((await stores.one.findServed(ana, id(requestId))) === null) continue;
              if (erased.some((text) => JSON.stringify(window).includes(text))) continue;
              expect((await givenIn(stores.two, requestId))?.slice(0, -1)).toEqual(window);
              stored++;
            }
          }
          await two.deleteUser(ana);
          one.drop();
        },
      );
      await fc.assert(rounds, { numRuns: 4, endOnFailure: true });
      expect(stored).toBeGreaterThan(0);
      expect(outdated).toBeGreaterThan(0);
    });

    it("go with the last turn that has them, when turns expire and prompts are taken back", async () => {
      const rows = async () => (await stores.texts()).shared.filter((text) => /Question \d\?/.test(text)).length;
      await one.compose(ana, behind(exchanges(2), { requestId: "r1", at: LONG_AGO }));
      await one.compose(ana, behind(exchanges(3), { requestId: "r2", at: 2 * LONG_AGO }));
      await one.compose(ana, behind(exchanges(4), { requestId: "r3" }));
      await one.compose(ana, behind(exchanges(1), { requestId: "r4" }));
      expect(await rows()).toBe(4);
      await one.expire(ana, 3 * LONG_AGO);
      expect(await rows()).toBe(4);
      await one.withdraw(ana, "r3");
      expect(await rows()).toBe(1);
      expect(await givenIn(stores.two, "r4")).toHaveLength(3);
      await one.compose(ana, behind([], { requestId: "r5", history: "none", at: 2 * LATER }));
      await one.expire(ana, LATER + 1);
      expect(await rows()).toBe(0);
    });

    it("are exported with their turns, and are no instructions", async () => {
      for (const requestId of ["r1", "r2"]) await one.compose(ana, behind(exchanges(2), { requestId }));
      const [exported] = (await stores.two.exportUser("default", "ana" as UserId, pause)).scopes;
      const given = exported?.tables["turns"]?.map((turn) => turn["given"]);
      expect(given).toEqual(
        ["r1", "r2"].map((name) => [...exchanges(2), { role: "user", content: `What about ${name}?` }]),
      );
      expect(exported?.tables["heads"]).toEqual([{ messages: [{ role: "system", content: "Be kind." }] }]);
    });

    it("are one scope's own", async () => {
      await one.compose(ana, behind(exchanges(2), { requestId: "r1" }));
      await one.compose(scopeOf("bo"), behind(exchanges(2), { requestId: "r1" }));
      await two.deleteUser(ana);
      expect((await stores.one.findRequest(scopeOf("bo"), id("r1")))?.turns[0]?.given).toHaveLength(5);
      expect(await stores.one.findQuotes("default", ana.userId, "m1" as MemoryId, [], pause)).toMatchObject({
        texts: [],
      });
    });
  });
}

const pause = () => Promise.resolve();
