import { describe, expect, it } from "vitest";
import type { RequestId } from "../../../src/core/index.js";
import { EngineLosses } from "../../../src/service/usage/losses.js";
import { observedCompose } from "./observed-compose.js";

const NOTHING = { cachedTokens: 0, promptTokens: 2_000 };
const HIT = { cachedTokens: 1_500, promptTokens: 2_000 };

/** Prompts that expect 1,500 tokens, composed and reported on at a time. */
class Traffic {
  readonly losses = new EngineLosses();

  compose(request: string, at: number, user = "ana", tenant = "default"): void {
    const prompt = observedCompose(request, at, user, tenant);
    this.losses.composed({ ...prompt, plan: { ...prompt.plan, expectedCachedTokens: 1_500 } });
  }

  report(request: string, report: typeof NOTHING | null, user = "ana", tenant = "default") {
    return this.losses.reported(observedCompose(request, 0, user, tenant).scope, request as RequestId, report);
  }

  serve(user: string, at: number, report = NOTHING, tenant = "default") {
    this.compose(`${user}${at}`, at, user, tenant);
    return this.report(`${user}${at}`, report, user, tenant);
  }
}

describe("why an engine lost what was expected", () => {
  const unknown = { because: null, restarted: [] };

  it("is that it evicted the prompt before", () => {
    const traffic = new Traffic();
    const { scope } = observedCompose("r1", 1);
    traffic.compose("r1", 1);
    traffic.losses.evicted(scope, ["r1" as RequestId]);
    traffic.compose("r2", 2);
    expect(traffic.report("r2", NOTHING)).toEqual({ because: "evicted", restarted: [] });
    traffic.compose("r3", 3);
    expect(traffic.report("r3", NOTHING)).toEqual(unknown);
  });

  it("is a restart where three users in a row find nothing: also of the two before, and of prompts from before it", () => {
    const traffic = new Traffic();
    traffic.compose("old", 5, "dora");
    expect(traffic.serve("ana", 10)).toEqual(unknown);
    expect(traffic.serve("ben", 11)).toEqual(unknown);
    const key = (user: string, request: string) => ({
      tenant: "default",
      userId: user,
      agentId: null,
      requestId: request,
    });
    const restarted = [key("ana", "ana10"), key("ben", "ben11")];
    expect(traffic.serve("cem", 12)).toEqual({ because: "restarted", restarted });
    expect(traffic.serve("dora", 20)).toEqual({ because: "restarted", restarted: [] });
    expect(traffic.serve("dora", 21)).toEqual(unknown);
  });

  it("is not known after a hit in between, of one user alone, of another tenant, or minutes apart", () => {
    const hit = new Traffic();
    const verdicts = [hit.serve("ana", 1), hit.serve("ben", 2), hit.serve("dora", 3, HIT), hit.serve("cem", 4)];
    const alone = new Traffic();
    for (let at = 1; at <= 5; at++) verdicts.push(alone.serve("ana", at));
    const tenants = new Traffic();
    for (const [at, tenant] of ["a", "b", "c"].entries()) verdicts.push(tenants.serve(`u${at}`, at, NOTHING, tenant));
    const slow = new Traffic();
    for (const [at, user] of ["ana", "ben", "cem"].entries()) verdicts.push(slow.serve(user, at * 6 * 60_000));
    expect(verdicts).toEqual(verdicts.map(() => unknown));
  });
});
