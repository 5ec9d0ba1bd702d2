import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { batchResult } from "../../../src/http/contracts/batch-contract.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { rowCounts } from "./stored-rows.js";

type Batch = z.output<typeof batchResult>;

const fact = (n: number) => ({ id: `m${n}`, memory: `Fact number ${n} is this one.` });
/** Two kinds of questions that take turns: those of one kind share most of what they retrieve. */
const requests = Array.from({ length: 12 }, (_, n) => ({
  user_id: "ada",
  request_id: `r-${n}`,
  system: "Be brief.",
  query: `Question ${n}?`,
  memories: [...Array.from({ length: 5 }, (_fact, at) => fact((n % 2) * 50 + at)), fact(100 + n)].reverse(),
}));
const answersIn = ({ answers }: Batch) => answers.flatMap((each) => ("answer" in each ? [each] : []));

describe("POST /compose/batch", () => {
  const app = servedApp();

  const sendBatch = async (bodies: readonly unknown[], more: object = {}) => {
    const { status, text } = await app.send("POST", "/compose/batch", { requests: bodies, ...more });
    expect(status).toBe(200);
    const json: unknown = JSON.parse(text);
    const batch = batchResult.parse(json);
    expect(batch).toEqual(json);
    return batch;
  };

  it("answers every request once, in the order in which they are to be executed, like ones back to back", async () => {
    const batch = await sendBatch(requests);
    const answers = answersIn(batch);
    expect(answers.map(({ rank }) => rank)).toEqual(requests.map((_request, at) => at));
    expect(answers.map(({ index }) => index).sort((a, b) => a - b)).toEqual(requests.map((_request, at) => at));
    for (const { index, answer } of answers) {
      expect(answer.request_id).toBe(`r-${index}`);
      expect(answer.plan.policy).toBe("batch");
      expect(new Set(answer.blocks.map(({ memory_id }) => memory_id))).toEqual(
        new Set(requests[index]?.memories.map(({ id }) => id)),
      );
    }
    const kinds = answers.map(({ index }) => index % 2);
    expect(kinds.filter((kind, at) => at > 0 && kind !== kinds[at - 1])).toHaveLength(1);
    // All but the first of each kind find the five blocks that the kind shares.
    expect(
      answers.filter(({ answer }) => answer.blocks.filter((b) => b.placement === "cached_prefix").length === 5),
    ).toHaveLength(10);
    expect(batch.end).toEqual({ read: 12, found: 12, composed: 12, failed: 0 });
  });

  it("stores what it answered, and repeats it", async () => {
    await sendBatch(requests);
    const stored = rowCounts(app.database);
    expect(stored).toMatchObject({ requests: 12, turns: 12 });
    const [first] = requests;
    const single = await app.compose(first ?? {});
    expect(single.plan.policy).toBe("batch");
    expect(rowCounts(app.database)).toEqual(stored);
  });

  it("makes one bad request an error in its own place, and goes on", async () => {
    const batch = await sendBatch([
      requests[0],
      { query: "Whose?" },
      { ...requests[1], memories: 7 },
      { ...requests[2], top_k: "many" },
      [],
      requests[3],
    ]);
    const problems = batch.answers.flatMap((each) =>
      "problem" in each ? [[each.index, each.problem.errors?.[0]?.field]] : [],
    );
    expect(problems).toEqual([
      [1, "user_id"],
      [2, "memories"],
      [3, "top_k"],
      [4, "body"],
    ]);
    expect(answersIn(batch)).toHaveLength(2);
    expect(batch.end).toEqual({ read: 6, found: 2, composed: 2, failed: 4 });
  });

  it.each([
    ["no JSON", "{", "application/json", 400],
    ["no batch", [], "application/json", 422],
    ["too many requests", { requests: Array.from({ length: 10_001 }, () => 1) }, "application/json", 422],
    ["another type", "x", "text/plain", 415],
  ])("refuses %s as a whole", async (_what, body, type, status) => {
    expect(problemOf(await app.send("POST", "/compose/batch", body, type)).status).toBe(status);
  });

  it("is planned by the planner that it names, and by no other", async () => {
    const policiesOf = (answers: readonly { readonly answer?: { readonly plan: { readonly policy: string } } }[]) =>
      new Set(answers.map(({ answer }) => answer?.plan.policy));
    const renamed = requests.map((one) => ({ ...one, user_id: "live", request_id: `live ${one.request_id}` }));
    const answers = answersIn(await sendBatch(renamed, { planner: "context-pilot", warm_start: true }));
    expect([answers.length, policiesOf(answers)]).toEqual([12, new Set(["batch"])]);
    const after = await app.compose({ ...renamed[0], request_id: undefined, policy: "context-pilot" });
    // The tree has the request, and no prompt was sent.
    expect(after.plan).toMatchObject({ policy: "context-pilot", expected_cached_tokens: 0 });
    expect(after.blocks.map(({ memory_id }) => memory_id)).not.toEqual(requests[0]?.memories.map(({ id }) => id));
    const offline = renamed.map((one) => ({ ...one, request_id: `off ${one.request_id}` }));
    const live = answersIn(await sendBatch(offline, { planner: "context-pilot" }));
    expect(policiesOf(live)).toEqual(new Set(["batch"]));
    const unknown = await app.send("POST", "/compose/batch", { requests: [], planner: "alg-4" });
    expect(problemOf(unknown).errors?.[0]?.field).toBe("planner");
  });

  it("gives no byte of one user's to another, though they ask for the same", async () => {
    const mine = requests.map((request) => ({ ...request, user_id: "ada" }));
    const theirs = requests.map((request) => ({
      ...request,
      user_id: "bo",
      request_id: `bo-${request.request_id}`,
      memories: request.memories.map(({ id, memory }) => ({ id, memory: `${memory} Secretly.` })),
    }));
    const answers = answersIn(await sendBatch([...mine, ...theirs]));
    for (const { index, answer } of answers) {
      expect(JSON.stringify(answer.messages).includes("Secretly")).toBe(index >= 12);
    }
    const alone = answersIn(
      await sendBatch(theirs.map((r) => ({ ...r, user_id: "cy", request_id: `cy-${r.request_id}` }))),
    );
    // What is planned for one user does not depend on what another asked for.
    const ofBo = answers.filter(({ index }) => index >= 12);
    expect(alone.map(({ index, answer }) => [index, answer.messages])).toEqual(
      ofBo.map(({ index, answer }) => [index - 12, answer.messages]),
    );
  });

  it("stops when the client goes away, keeps what was answered, and goes on serving", async () => {
    const many = Array.from({ length: 3_000 }, (_, n) => ({ ...requests[n % 12], request_id: `many-${n}` }));
    const cut = new AbortController();
    const answer = await fetch(`${app.base}/compose/batch`, {
      method: "POST",
      body: JSON.stringify({ requests: many }),
      headers: { "content-type": "application/json", connection: "close" },
      signal: cut.signal,
    });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; !text.includes('"answer"'); ) text += (await reader?.read())?.value ?? "";
    cut.abort();
    await new Promise((resolve) => setTimeout(resolve, 200));
    const stored = rowCounts(app.database)["requests"] ?? 0;
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(rowCounts(app.database)["requests"]).toBe(stored);
    expect(stored).toBeGreaterThan(0);
    expect(stored).toBeLessThan(3_000);
    expect(app.faults).toEqual([]);
    expect((await app.compose({ user_id: "ada", query: "Still?", memories: [] })).messages).toHaveLength(1);
  });
});
