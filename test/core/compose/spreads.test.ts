import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { EMPTY_SCOPE, ScopeState } from "../../../src/core/compose/scope-state.js";
import type { ClusterNode } from "../../../src/core/published/cluster-tree.js";
import { NO_PUBLISHED_ROWS } from "../../../src/core/published/published-knowledge.js";
import type { WorkerRow } from "../../../src/core/routing/worker-routing.js";

const MANY = 200_000;

describe("what has no bound", () => {
  it("loads as a scope: 200,000 cluster nodes and 200,000 workers' rows", () => {
    const clusters = Array.from({ length: MANY }, (_, at): unknown => ({
      id: at + 1,
      parent: at === 0 ? null : 1,
      blocks: at === 0 ? [] : [at],
      position: at + 1,
      nextPosition: at === 0 ? MANY + 1 : 1,
      distance: 0,
      lastUsed: at,
    })) as ClusterNode[];
    const workers = Array.from({ length: MANY }, (_, at): unknown => ({
      id: at + 1,
      name: "w",
      labels: [],
    })) as WorkerRow[];
    const bounds = { maxIndexNodes: 2 * MANY, maxLoadedConversations: 1 };
    const state = new ScopeState(
      { ...EMPTY_SCOPE, published: { ...NO_PUBLISHED_ROWS, clusters }, workers },
      () => 0,
      bounds,
    );
    expect(state.published.clusters.size).toBe(MANY);
  });

  it("is put on the stack nowhere: a call with a list's elements as arguments ends at some hundred thousand", () => {
    const source = resolve(import.meta.dirname, "../../../src");
    const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    // The dashboard's page shows as many as the API answers at once.
    const spread =
      /(?:\bMath\.(?:max|min)|\.(?:push|unshift|splice|concat)|\bfromC\w+)\s*\(\s*(?:[^(){}]*,\s*)?\.\.\.|\.apply\(/;
    const found = files.filter((file) => {
      if (file.startsWith("dashboard/")) return false;
      const code = readFileSync(join(source, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
      return spread.test(code.replaceAll("Reflect.apply(", ""));
    });
    expect(found).toEqual([]);
  });
});
