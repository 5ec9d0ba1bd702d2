import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINE_MODELS } from "../../../src/core/index.js";
import { UsageRecorder } from "../../../src/service/usage/usage-recorder.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { createDatabase, type EmbeddedServer, startServer } from "../../postgres/embedded-server.js";
import { testServer } from "../../postgres/test-server.js";
import { observedCompose } from "../../service/usage/observed-compose.js";

const server = await testServer();

describe.skipIf(server.url === null)("recording on a server that is killed", () => {
  let own: EmbeddedServer;
  beforeAll(async () => {
    own = await startServer();
  });
  afterAll(() => own.stop());

  it("loses no prompt and counts none twice, while two instances record", async () => {
    const url = await createDatabase(own.url, "killed");
    const { journal } = await openPostgres(url);
    await journal.close();
    const logs = [threadedUsageLog({ url }), threadedUsageLog({ url })] as const;
    const faults: unknown[] = [];
    const recorders = logs.map(
      (log) =>
        new UsageRecorder({ log, now: Date.now, costs: ENGINE_MODELS.hosted, onFault: (error) => faults.push(error) }),
    );
    let composed = 0;
    let isOver = false;
    const recording = recorders.map(async (recorder) => {
      while (!isOver) {
        for (let n = 0; n < 20; n++) recorder.composed(observedCompose(`r${composed++}`, Date.now(), `u${n % 7}`));
        void recorder.flush();
        await setTimeout(5);
      }
    });
    for (let kill = 0; kill < 3; kill++) {
      await setTimeout(300);
      await own.kill();
      await setTimeout(100);
      await own.restart();
    }
    isOver = true;
    await Promise.all(recording);
    const [log] = logs;
    const prompts = async () => {
      await Promise.all(recorders.map((recorder) => recorder.flush()));
      const view = { tenant: "default", window: "month", now: Date.now() } as const;
      return (await log.summary(view).catch(() => null))?.total.sums.prompts;
    };
    await expect.poll(prompts).toBe(composed);
    expect(recorders.map(({ dropped }) => dropped)).toEqual([0, 0]);
    expect(faults.length).toBeGreaterThan(0);
    const { rows } = await log.prompts({ tenant: "default" }, null, 100_000);
    expect(rows).toHaveLength(composed);
    expect(new Set(rows.map(({ number }) => number)).size).toBe(composed);
    await Promise.all(logs.map((each) => each.close()));
  });
});
