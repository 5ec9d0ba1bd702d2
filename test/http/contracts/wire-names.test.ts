import { describe, expect, expectTypeOf, it } from "vitest";
import type { ComposeOptions, UsageRow, UsageViewOptions } from "../../../src/client/index.js";
import { ROUTES } from "../../../src/client/routes.js";
import type { Label, MemoryId, PlanDepth, PlanEpoch, RequestId } from "../../../src/core/index.js";
import { writeCompose } from "../../../src/http/contracts/compose-contract.js";
import examples from "../../../src/http/contracts/examples.json" with { type: "json" };
import { camelName, fromWire, toWire, wireName } from "../../../src/http/contracts/wire-names.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import { servedApp } from "../server/served-app.js";

const label = (value: number) => value as Label;
const request = (value: string) => value as RequestId;

type Complete<T> = { [K in keyof T]-?: Exclude<T[K], undefined> };

describe("the names of fields", () => {
  const app = servedApp();

  it("of every route go and come by one rule", async () => {
    const names = new Set<string>();
    JSON.parse((await app.send("GET", "/openapi.json")).text, (key, value: unknown) => {
      if (key === "properties") for (const name of Object.keys(value as object)) names.add(name);
      return value;
    });
    expect(names.size).toBeGreaterThan(100);
    for (const name of names) {
      expect(wireName(camelName(name))).toBe(name);
      expect(camelName(name)).not.toContain("_");
    }
  });

  it("are the types' too", () => {
    expectTypeOf<ComposeOptions["memoryBudgetTokens"]>().toEqualTypeOf<number | null | undefined>();
    expectTypeOf<ComposeOptions["workers"]>().toEqualTypeOf<readonly string[] | null | undefined>();
    expectTypeOf<UsageRow["reportedCachedTokens"]>().toEqualTypeOf<number | null>();
    expectTypeOf<UsageViewOptions["window"]>().toEqualTypeOf<"hour" | "day" | "month" | null | undefined>();
  });
});

describe("an answer's JSON, read by the client", () => {
  const sent = (json: unknown): unknown => JSON.parse(JSON.stringify(json));

  it("of a prompt is the library's answer, in every field that one can have", () => {
    const epoch: Complete<PlanEpoch> = { began: "ratio", prompts: 2, leftOut: 3, headTokens: 40, carriedTokens: 5 };
    const depth: Complete<PlanDepth> = {
      retrieved: 9,
      given: 4,
      outcome: "sure",
      probes: [{ blocks: 4, entropy: 0.5, promptTokens: 90, cachedTokens: null }],
    };
    const plan: Complete<ComposeAnswer["plan"]> = {
      layout: "conversation",
      policy: "prefix-exact",
      expectedCachedTokens: 10,
      uncachedTokens: 20,
      totalTokens: 30,
      miss: { cause: "unknown", tokens: 2 },
      searchPath: [0, 2],
      orderChanged: true,
      stableMessages: 3,
      retention: "keep",
      instructionChange: { line: 2, text: "It is ten." },
      toolChanges: { added: ["get_weather"], removed: [], changed: [] },
      freshStart: true,
      freshStartReason: "memory_forgotten",
      addedMessages: 2,
      epoch,
      depth,
    };
    const answer: Complete<ComposeAnswer> = {
      requestId: request("r-1"),
      messages: [{ role: "user", content: "Where?", tool_calls: [{ call_id: 1 }], provider_metadata: { some_key: 1 } }],
      system: [{ type: "text", text: "Be brief.", ...{ cache_control: { type: "ephemeral" } } }],
      blocks: [{ label: label(1), memoryId: "m-1" as MemoryId, placement: "new", rank: 0, replaces: [label(2)] }],
      annotations: ["Most relevant first: [1]."],
      tools: [{ type: "function", function: { name: "get_weather", parameters: { a_b: {} } } }],
      plan,
      engine: { fields: { prompt_cache_key: "k", nested_map: { a_b: 1 } }, headers: { "x-request_id": "r-1" } },
      worker: "gpu-0",
      warnings: [{ code: "memory_cut", message: "…", memoryIds: ["m-1" as MemoryId] }],
    };
    expect(fromWire(sent(writeCompose(answer)), ROUTES.compose.unmodified)).toEqual(answer);
  });

  it("goes back into the same JSON, for every example of the document", () => {
    const known: Readonly<Record<string, unknown>> = examples;
    const bodies = Object.values(ROUTES)
      .map(({ operation, unmodified }) => ({ json: known[operation ?? ""], unmodified }))
      .filter(({ json }) => json !== undefined);
    expect(bodies.length).toBeGreaterThan(3);
    for (const { json, unmodified } of bodies) expect(toWire(fromWire(json, unmodified), unmodified)).toEqual(json);
  });
});
