import fc from "fast-check";
import { expect } from "vitest";
import type { ChatMessage, Digest, RequestId, Scope } from "../../../src/core/index.js";
import { type DatabaseConnection, openDatabase } from "../../../src/store/database/open-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { scopeOf } from "../api/stored-compose.js";
import { MemoryStore } from "../model/memory-store.js";
import { DrivenStore, type Said } from "./driven-store.js";
import { droppedTextsIn, remainsOf, wrongReferencesIn } from "./remains.js";
import { toldBy } from "./told-by-store.js";

const coach = { ...scopeOf("ana"), agentId: "coach" as Scope["agentId"] };
export const SCOPES: readonly Scope[] = [scopeOf("ana"), coach, scopeOf("bo")];
const CONVERSATIONS = ["c1", "c2"];
/** When the first prompt is composed. */
const START = 1_000;
const MEMORIES = ["m-one", "m-two", "m-three", "m-four"];

/** The texts of a memory; two memories share one. */
const textOf = (memory: string, version: number) =>
  version === 0 && memory !== "m-one" && memory !== "m-four"
    ? "The two of them say the very same"
    : `What ${memory.slice(2)} has to tell, told ${version} times over`;

/** What makes a question worth a row of its own, once it comes again, and at once. */
const LENGTHS = ["", ` ${"Tell it at length. ".repeat(6)}`, ` ${"Tell all of it. ".repeat(600)}`];

const AT = "at the end of a long conversation that was had elsewhere, and that goes on and on";
const CALL = { id: "call-1", type: "function", function: { name: "ask", arguments: `{"about":"all of it, ${AT}"}` } };
/**
 * A history that prompts bring along: long messages and a short one, plain and with more fields in another order, some of which quote. It is
 * said again after it was forgotten, too.
 */
const TOLD: readonly ChatMessage[] = [
  { role: "user", content: `Is it true: "${textOf("m-one", 1)}"? That was asked ${AT}.` },
  { tool_calls: [CALL], role: "assistant", content: null },
  {
    role: "tool",
    tool_call_id: "call-1",
    content: [{ type: "text", text: `Two say it: "${textOf("m-two", 0)}", ${AT}.` }],
  },
  { content: `So it is, and was ${AT}.`, role: "assistant" },
  { role: "user", content: "Yes?" },
  { role: "assistant", content: `Quite, and not otherwise ${AT}.` },
];

/** Two stores that are driven alike, and what there is to ask them about. */
export class StorePair {
  readonly model = new DrivenStore(new MemoryStore());
  readonly database: DatabaseConnection = openDatabase(":memory:");
  readonly journal = new DrivenStore(new JournalStore(new InlineJournal(this.database)));
  readonly requests: string[] = [];
  readonly sections = new Set<Digest>();
  readonly asked = new Map<string, { readonly of: Scope; readonly said: Said }>();
  at = START;
  /** How many snapshots there were, of more records than a first one has, each time that the stores were compared. */
  snapshots = 0;
  #questions = 0;
  #hasReusedIds = false;

  /** Does the same with both, and gives what the journal gave. */
  async both<T>(work: (store: DrivenStore) => Promise<T>): Promise<T> {
    const [model, journal] = [await work(this.model), await work(this.journal)];
    expect(journal).toEqual(model);
    this.at += 1_000;
    return journal;
  }

  /** `repeated`: how many requests ago the question was asked before; `reused`: the id was sent before. Null: it is new. */
  async compose(
    of: Scope,
    said: Omit<Said, "requestId" | "question" | "at">,
    {
      quote = "",
      length = "",
      repeated = null,
      reused = null,
    }: { quote?: string; length?: string; repeated?: number | null; reused?: number | null },
  ): Promise<void> {
    const requestId = await this.#idFor(of, reused);
    const before = repeated === null ? undefined : this.asked.get(this.request(repeated))?.said.question;
    const question = before ?? `Question ${++this.#questions}.${quote}${length}`;
    const asked = { ...said, requestId, question, at: this.at, told: TOLD };
    if (!this.requests.includes(requestId)) this.requests.push(requestId);
    this.asked.set(requestId, { of, said: asked });
    const { sections } = await this.both((store) => store.compose(of, asked));
    for (const section of sections) this.sections.add(section);
  }

  /** An id that was sent before is answered as it was then; only where that cannot be is it composed again. */
  async #idFor(of: Scope, reused: number | null): Promise<string> {
    const another = `r${this.requests.length + 1}`;
    if (reused === null || this.requests.length === 0) return another;
    const used = this.request(reused);
    const answered = await this.both(async ({ store }) => (await store.findRequest(of, used as RequestId)) !== null);
    if (!answered && this.asked.has(used)) this.#hasReusedIds = true;
    return answered ? another : used;
  }

  /** Takes a request back, and composes it again, as after an engine rejected it. */
  async reject(requestId: string): Promise<void> {
    const asked = this.asked.get(requestId);
    if (asked === undefined) return;
    await this.both((store) => store.withdraw(asked.of, requestId));
    await this.compare();
    await this.compose(asked.of, asked.said, {});
  }

  /** Has a user forget a memory, and looks for remains of it. */
  async forget(of: Scope, one: string): Promise<void> {
    const texts = await this.both((store) => store.forget(of, one, this.at));
    expect(await remainsOf(this.database, this.journal.store, of.userId, one, texts)).toEqual([]);
  }

  async compare(): Promise<void> {
    const requests = this.requests.slice(-6);
    const questions = {
      scopes: SCOPES,
      conversations: CONVERSATIONS,
      requests,
      memories: MEMORIES,
      sections: [...this.sections],
      until: this.at,
      areIdsReused: this.#hasReusedIds,
    };
    const [model, journal] = [await toldBy(this.model.store, questions), await toldBy(this.journal.store, questions)];
    expect(journal).toEqual(model);
    expect(wrongReferencesIn(this.database)).toEqual([]);
    this.snapshots +=
      this.database.sqlite.prepare<[], number>("select count(*) from snapshots where n > 32").pluck().get() ?? 0;
  }

  request(nth: number): string {
    return this.requests[this.requests.length - 1 - (nth % Math.max(1, this.requests.length))] ?? "none";
  }

  /** Does a list of steps, and compares now and then. */
  async walk(list: readonly Step[], stepsBetween: number): Promise<void> {
    for (const [at, [, run]] of list.entries()) {
      await run(this);
      if (at % stepsBetween === stepsBetween - 1) await this.compare();
    }
    await this.compare();
  }

  async close(): Promise<void> {
    await this.model.store.close();
    await this.journal.store.close();
  }
}

/** Something to do with both stores, and its name. */
type Step = readonly [name: string, run: (pair: StorePair) => Promise<void>];

const memory = fc.constantFrom(...MEMORIES);
const version = fc.nat({ max: 2 });
const nth = fc.nat({ max: 5 });

const composes = (scope: fc.Arbitrary<Scope>) =>
  fc
    .record({
      scope,
      conversationId: fc.constantFrom(null, ...CONVERSATIONS),
      memories: fc.uniqueArray(fc.record({ memory, version }), { maxLength: 4, selector: (one) => one.memory }),
      quoted: fc.option(fc.record({ memory, version }), { freq: 4 }),
      system: fc.constantFrom("Be kind.", "Be brief.", "Remember: what one has to tell, told 1 times over."),
      history: fc.constantFrom("same" as const, "same" as const, ...(["restated", "window", "told", "none"] as const)),
      length: fc.constantFrom(...LENGTHS),
      worker: fc.constantFrom(null, "north"),
      repeated: fc.option(nth, { freq: 4 }),
      reused: fc.option(nth, { freq: 4 }),
    })
    .map(
      ({ quoted, memories, scope: of, repeated, reused, length, ...asked }): Step => [
        `compose ${JSON.stringify({ of: [of.userId, of.agentId], quoted, memories, repeated, reused, length: length.length, ...asked })}`,
        async (pair) => {
          const quote = quoted === null ? "" : ` Is it true: "${textOf(quoted.memory, quoted.version)}"?`;
          const given = memories.map((one) => ({ id: one.memory, text: textOf(one.memory, one.version) }));
          await pair.compose(of, { ...asked, memories: given }, { quote, length, repeated, reused });
        },
      ],
    );

/** Any list of steps, in these scopes mostly. */
export function anySteps(
  scopes: readonly Scope[],
  lengths: { readonly minLength: number; readonly maxLength: number },
) {
  const scope = fc.constantFrom(...scopes);
  return fc.array(stepIn(scope), { ...lengths, size: "max" }).map((list) => {
    const named = { [fc.toStringMethod]: () => `\n${list.map(([name]) => name).join("\n")}` };
    return Object.assign(list, named);
  });
}

const stepIn = (scope: fc.Arbitrary<Scope>) =>
  fc.oneof(
    { arbitrary: composes(scope), weight: 12 },
    {
      arbitrary: fc.record({ scope, nth, cached: fc.option(fc.nat({ max: 99 })) }).map(
        ({ scope: of, nth: at, cached }): Step => [
          `report ${at} ${cached}`,
          (pair) => {
            const observed = cached === null ? { ttftMs: 1.5 } : { promptTokens: 100, cachedTokens: cached };
            return pair.both((store) => store.report(of, pair.request(at), observed));
          },
        ],
      ),
      weight: 3,
    },
    {
      arbitrary: fc.record({ scope, ids: fc.array(nth, { maxLength: 3 }) }).map(
        ({ scope: of, ids }): Step => [
          `evict ${of.userId} ${of.agentId} ${ids}`,
          (pair) =>
            pair.both((store) =>
              store.evict(
                of,
                ids.map((at) => pair.request(at)),
              ),
            ),
        ],
      ),
      weight: 2,
    },
    {
      arbitrary: fc
        .record({ scope, memory, version })
        .map(
          ({ scope: of, ...one }): Step => [
            `update ${of.userId} ${of.agentId} ${one.memory} ${one.version}`,
            (pair) => pair.both((store) => store.update(of, one.memory, textOf(one.memory, one.version))),
          ],
        ),
      weight: 1,
    },
    {
      arbitrary: nth.map((at): Step => [`reject ${at}`, (pair) => pair.reject(pair.request(at))]),
      weight: 2,
    },
    {
      arbitrary: fc
        .record({ scope, memory })
        .map(({ scope: of, memory: one }): Step => [`forget ${of.userId} ${one}`, (pair) => pair.forget(of, one)]),
      weight: 2,
    },
    {
      arbitrary: fc.record({ scope, share: fc.double({ min: 0, max: 1, noNaN: true }) }).map(
        ({ scope: of, share }): Step => [
          `expire ${of.userId} ${of.agentId} ${share}`,
          async (pair) => {
            await pair.both((store) => store.expire(of, START + share * (pair.at - START)));
            expect(await droppedTextsIn(pair.database, pair.journal.store, of)).toEqual([]);
          },
        ],
      ),
      weight: 2,
    },
    {
      arbitrary: scope.map(
        (of): Step => [`delete ${of.userId}`, (pair) => pair.both((store) => store.deleteUser(of)).then(() => {})],
      ),
      weight: 1,
    },
    { arbitrary: fc.constant<Step>(["drop", async (pair) => pair.both(async (store) => store.drop())]), weight: 2 },
  );
