import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { ComposeOptions, UsageRow, UsageViewOptions } from "../../../src/client/index.js";
import { ROUTES } from "../../../src/client/routes.js";
import type { Label, MemoryId, PlanDepth, PlanEpoch, RequestId } from "../../../src/core/index.js";
import * as batch from "../../../src/http/contracts/batch-contract.js";
import { composeBody, composeResult, writeCompose } from "../../../src/http/contracts/compose-contract.js";
import * as engine from "../../../src/http/contracts/engine-report-contract.js";
import examples from "../../../src/http/contracts/examples.json" with { type: "json" };
import { explainQuery, explainResult, requestIds } from "../../../src/http/contracts/explain-contract.js";
import { health } from "../../../src/http/contracts/health-contract.js";
import * as usage from "../../../src/http/contracts/usage-contract.js";
import { usageRequestQuery, usageRequestResult } from "../../../src/http/contracts/usage-contract.js";
import * as memory from "../../../src/http/contracts/user-contract.js";
import * as user from "../../../src/http/contracts/user-contract.js";
import { exportResult } from "../../../src/http/contracts/user-contract.js";
import { camelName, fromWire, toWire, wireName } from "../../../src/http/contracts/wire-names.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";

/** Every contract of a route that the client calls: what goes there, and what comes back. */
const CONTRACTS: Readonly<Record<string, { readonly sent?: z.ZodType; readonly answered?: z.ZodType }>> = {
  compose: { sent: composeBody, answered: composeResult },
  composeBatch: { sent: batch.batchBody, answered: batch.batchResult },
  add: { sent: memory.addBody.schema, answered: memory.addResult },
  memories: { sent: memory.memoriesQuery, answered: memory.memoriesResult },
  evict: { sent: engine.evictBody.schema, answered: engine.evictResult },
  feedback: { sent: engine.feedbackBody.schema, answered: engine.feedbackResult },
  receiveMem0Event: {},
  explain: { sent: explainQuery.extend(requestIds.shape), answered: explainResult },
  exportUser: { sent: user.userIds, answered: exportResult },
  usageSummary: { sent: usage.usageSummaryQuery, answered: usage.usageSummaryResult },
  usageRequests: { sent: usage.usageRequestsQuery, answered: usage.usageRequestsResult },
  usageRequest: { sent: usageRequestQuery, answered: usageRequestResult },
  forgetMemory: { sent: memory.memoryIds, answered: memory.forgetMemoryResult },
  forgetUser: { sent: user.userIds, answered: user.forgetUserResult },
  health: { answered: health },
  live: { answered: health },
  metrics: {},
  openapi: {},
};

/** Dotted paths of every field that a schema names, lists left out; not what stands behind those that stay unmodified. */
function fieldsOf(schema: z.ZodType, unmodified: readonly string[], io: "input" | "output"): string[] {
  const json = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline", cycles: "throw" });
  const definitions = (json["$defs"] ?? {}) as Record<string, unknown>;
  const found = new Set<string>();
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null || unmodified.includes(path)) return;
    if ("$ref" in value) walk(definitions[String(value.$ref).replace(/^#\/\$defs\//, "")], path);
    for (const [key, inner] of Object.entries(value)) {
      if (key === "properties") {
        for (const [name, field] of Object.entries(inner as object)) {
          const at = path === "" ? name : `${path}.${name}`;
          found.add(at);
          walk(field, at);
        }
      } else if (["anyOf", "oneOf", "allOf"].includes(key)) for (const one of inner as unknown[]) walk(one, path);
      else if (key === "items") walk(inner, path);
    }
  };
  walk(json, "");
  return [...found];
}

const label = (value: number) => value as Label;
const request = (value: string) => value as RequestId;

type Complete<T> = { [K in keyof T]-?: Exclude<T[K], undefined> };

describe("the names of fields", () => {
  it("are known of every route", () => {
    expect(Object.keys(CONTRACTS).sort()).toEqual(Object.keys(ROUTES).sort());
  });

  it.each(Object.entries(CONTRACTS))("of %s go and come by one rule", (method, { sent, answered }) => {
    const { unmodified } = ROUTES[method as keyof typeof ROUTES];
    const fields = [
      ...(sent === undefined ? [] : fieldsOf(sent, unmodified, "input")),
      ...(answered === undefined ? [] : fieldsOf(answered, unmodified, "output")),
    ];
    if (sent ?? answered) expect(fields.length).toBeGreaterThan(0);
    for (const field of fields) {
      const name = field.split(".").at(-1) ?? "";
      expect({ field, name: wireName(camelName(name)) }).toEqual({ field, name });
      expect(camelName(name), field).not.toContain("_");
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
