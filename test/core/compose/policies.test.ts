import { describe, expect, it } from "vitest";
import { DEFAULT_POLICY, ORDERING_POLICIES, POLICY_NAMES } from "../../../src/core/compose/policies.js";
import { describeOrderingPolicy, type OrderingSkips } from "../ordering/ordering.suite.js";

const SKIPS: Readonly<Record<string, OrderingSkips>> = {
  sorted: { "leaves the retrieval order alone where nothing is known": "sorts by label, whatever is known" },
};

describe("ordering policies", () => {
  it("are those that a caller can name, each under its own name", () => {
    expect(Object.keys(ORDERING_POLICIES).sort()).toEqual([...POLICY_NAMES].sort());
    for (const [name, policy] of Object.entries(ORDERING_POLICIES)) expect(policy.name).toBe(name);
    expect(POLICY_NAMES).toContain(DEFAULT_POLICY);
  });
});

for (const [name, policy] of Object.entries(ORDERING_POLICIES)) describeOrderingPolicy(policy, SKIPS[name]);
