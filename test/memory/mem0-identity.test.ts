import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UserId } from "../../src/core/text/ids.js";
import {
  embeddedAgent,
  embeddedScope,
  embeddedUserName,
  sharedScope,
  sharedUserName,
} from "../../src/memory/mem0-identity.js";
import { scopeOf } from "./memory-source.suite.js";

/** Any UTF-16, lone surrogates included, with plenty of what matters here. */
const name = fc.string({
  unit: fc.oneof(
    fc.constantFrom("a", "%", ":", "*", " ", "/", "0", "\ud800", "\udc00", "ä"),
    fc.string({ unit: "binary", maxLength: 1 }),
  ),
  maxLength: 6,
});
const tenant = fc.oneof(fc.constant("default"), name);

describe("names in the embedded store", () => {
  it("are the caller's own where they are ordinary", () => {
    expect(embeddedUserName(scopeOf("ada.l-1_x@example.org"))).toBe("ada.l-1_x@example.org");
  });

  it("differ wherever tenant, user or agent differ", () => {
    const scope = fc.tuple(tenant, name, fc.option(name));
    fc.assert(
      fc.property(scope, scope, ([t1, u1, a1], [t2, u2, a2]) => {
        const [one, two] = [embeddedScope(scopeOf(u1, a1, t1)), embeddedScope(scopeOf(u2, a2, t2))];
        expect(one.userId === two.userId).toBe(t1 === t2 && u1 === u2);
        expect(one.agentId === two.agentId).toBe(a1 === a2);
      }),
      { numRuns: 5_000 },
    );
  });

  it.each(["", "none", "%none", "%", "null"])("no agent is not the agent %j", (agent) => {
    expect(embeddedScope(scopeOf("ada", agent)).agentId).not.toBe(embeddedScope(scopeOf("ada")).agentId);
  });

  it("lead back to the agent that was given", () => {
    fc.assert(
      fc.property(fc.option(name), (a) => {
        expect(embeddedAgent(embeddedScope(scopeOf("ada", a)).agentId)).toBe(a);
      }),
      { numRuns: 5_000 },
    );
  });

  it("are what Mem0 takes as they are: not empty, no white space, no wildcard", () => {
    fc.assert(
      fc.property(tenant, name, fc.option(name), (t, u, a) => {
        const { userId, agentId } = embeddedScope(scopeOf(u, a, t));
        for (const given of [userId, agentId]) expect(given).toMatch(/^[A-Za-z0-9._@%:-]+$/);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("names in a shared Mem0", () => {
  it("are the caller's own in the default tenant", () => {
    expect(sharedScope("s", scopeOf("Ada Lovelace/ä:1", "bot 7"))).toEqual({
      userId: "Ada Lovelace/ä:1",
      agentId: "bot 7",
    });
  });

  it("carry the tenant in others", () => {
    expect(sharedUserName("s", { tenant: "ac/me", userId: "a b" as UserId })).toBe("memprefix/ac%002fme/a%0020b");
  });

  it.each(["", "*", " ada", "ada\t", "\u0085ada", "ada\u001c", "\ufeffada", "a\ud800", "a\0b", "memprefix/acme/ada"])(
    "are refused where Mem0 would take them for another: %j",
    (id) => {
      expect(() => sharedUserName("s", { tenant: "default", userId: id as UserId })).toThrow(/cannot use/);
    },
  );

  it("never collide, nor change when they are trimmed or sent", () => {
    const given = fc.tuple(tenant, name);
    const named = ([t, u]: [string, string]) => {
      try {
        return sharedUserName("s", { tenant: t, userId: u as UserId });
      } catch {
        return null;
      }
    };
    fc.assert(
      fc.property(given, given, (first, second) => {
        const [one, two] = [named(first), named(second)];
        if (one === null || two === null) return;
        expect(one === two).toBe(first[0] === second[0] && first[1] === second[1]);
        expect(one.trim()).toBe(one);
        expect(decodeURIComponent(encodeURIComponent(one))).toBe(one);
      }),
      { numRuns: 5_000 },
    );
  });
});
