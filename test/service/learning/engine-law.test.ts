import { beforeEach, describe, expect, it } from "vitest";
import { ENGINE_MODELS, type EngineModel, promptCost, smooth } from "../../../src/core/index.js";
import { DEFAULT_TENANT } from "../../../src/service/base/tenant.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { ana, composeWith, openService } from "../compose/service-fixture.js";

const { cpu, gpu, hosted } = ENGINE_MODELS;

describe("the law of a service's engine", () => {
  const newFolder = temporaryFolders();
  let directory = "";
  beforeEach(() => {
    directory = newFolder();
  });
  const open = (engine: EngineModel) => openService({ directory, engine });

  /** Composes and reports times as an engine with this law would have taken, or these. */
  async function serve(
    service: Memprefix,
    law: EngineModel | (() => number),
    requests: number,
    name: string,
    msPerAnswerToken: ((promptTokens: number) => number) | null = null,
  ): Promise<void> {
    for (let n = 0; n < requests; n++) {
      const { requestId } = await composeWith(service, {
        userId: "ana",
        requestId: `${name}-${n}`,
        query: `${n}?`,
        memories: [],
      });
      const [promptTokens, cachedTokens] = [2_000 + ((n * 577) % 3_000), (n * 211) % 1_900];
      const ttftMs = typeof law === "function" ? law() : promptCost(smooth(law), promptTokens, cachedTokens);
      const answered = msPerAnswerToken && { tokens: 100, ms: 100 * msPerAnswerToken(promptTokens) };
      const report = { promptTokens, cachedTokens, ttftMs };
      await service.chats.reports.feedback(ana, null, requestId, report, { model: "", answered });
    }
  }

  /** Whether each turn of a conversation kept all that stood. */
  async function retentions(service: Memprefix, id: string): Promise<readonly boolean[]> {
    const history: { role: string; content: string }[] = [];
    const chosen = [];
    for (let n = 0; n < 18; n++) {
      history.push({ role: "user", content: `Question ${n}?` });
      const memories = Array.from({ length: 8 }, (_, at) => ({
        id: `m${5 * n + at}`,
        memory: `Fact number ${5 * n + at} is this.`,
      }));
      const { plan } = await composeWith(service, {
        userId: "ana",
        conversationId: id,
        messages: [...history],
        memories,
        retention: "auto",
      });
      chosen.push(plan.retention === "keep" && !plan.freshStart);
      history.push({ role: "assistant", content: "Yes." });
    }
    return chosen;
  }

  it("is the configured one until enough was measured, then the measured one, also after a restart", async () => {
    const service = open(cpu);
    await serve(service, gpu, 15, "few");
    expect(await service.timeLaw()).toBeNull();
    await serve(service, gpu, 20, "more");
    const law = await service.timeLaw();
    expect(law?.fixedMs).toBeCloseTo(15, 1);
    expect(law?.perTokenMs).toBeCloseTo(0.008, 4);
    await service.close();
    const again = open(cpu);
    expect(await again.timeLaw()).toEqual(law);
    await again.close();
  });

  it("is what auto retention goes by", async () => {
    const dear: EngineModel = { ...cpu, cost: { kind: "time", fixedMs: 0, perTokenMs: 0.001, perPairMs: 0.01 } };
    const service = open(dear);
    expect(await retentions(service, "before")).toContain(false);
    await serve(service, gpu, 40, "measured");
    expect(await retentions(service, "after")).not.toContain(false);
    // Answers whose tokens take as long behind any prompt change nothing; where a longer one makes them slower, it is kept short.
    await serve(service, gpu, 40, "answered", () => 40);
    expect(await retentions(service, "steady")).not.toContain(false);
    await serve(service, gpu, 300, "slowed", (promptTokens) => 40 + 0.01 * promptTokens);
    expect(await retentions(service, "slow")).toContain(false);
    await service.close();
  });

  it("is the engine's own where several prompts at once wait for each other, for all tenants' users", async () => {
    const service = open(cpu);
    const other = service.forTenant({ ...DEFAULT_TENANT, name: "other" });
    const perTokenMs = 0.5;
    for (let round = 0; round < 24; round++) {
      const sent = await Promise.all(
        [service, service, other].map(async (tenant, at) => {
          const requestId = `${round}-${at}`;
          const answer = await composeWith(tenant, { userId: "ana", requestId, query: `${round}?`, memories: [] });
          const promptTokens = 1_000 + ((97 * (3 * round + at)) % 1_500);
          return { reports: tenant.chats.reports, answer, promptTokens, cachedTokens: (397 * (3 * round + at)) % 950 };
        }),
      );
      // One after the other, all sent at once.
      let firstAt = 10_000 * round;
      for (const { reports, answer, promptTokens, cachedTokens } of sent) {
        firstAt += perTokenMs * (promptTokens - cachedTokens);
        const plan = { ...answer.plan, totalTokens: promptTokens, expectedCachedTokens: cachedTokens };
        reports.began(ana, null, { ...answer, plan }, { sentAt: 10_000 * round, firstAt });
        const observed = { promptTokens, cachedTokens, ttftMs: firstAt - 10_000 * round };
        await reports.feedback(ana, null, answer.requestId, observed);
      }
    }
    const law = await service.timeLaw();
    // A mean prompt has whole tokens.
    expect(law?.fixedMs).toBeLessThan(perTokenMs);
    expect(law?.perTokenMs).toBeCloseTo(perTokenMs, 2);
    await service.close();
  });

  it("stays a price where prompts are billed, and takes a repeated report once", async () => {
    const billed = open(hosted);
    await serve(billed, gpu, 40, "billed");
    expect(await billed.timeLaw()).toBeNull();
    await billed.close();
    const service = openService({ engine: cpu });
    const { requestId } = await composeWith(service, { userId: "ana", query: "?", memories: [] });
    for (let n = 1; n <= 40; n++)
      await service.feedback(ana, null, requestId, { promptTokens: 100 * n, cachedTokens: 0, ttftMs: n });
    expect(await service.timeLaw()).toBeNull();
    await service.close();
  });
});
