import { afterEach, describe, expect, it, vi } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer } from "./anthropic-server.js";

const SYSTEM = "Be brief and kind, and say no more than you know. ".repeat(150);
const factsOf = (turn: number) =>
  Array.from(
    { length: 40 },
    (_, n) => `Ada's thing ${turn}-${n} is in drawer ${7 * turn + n}, next to the other things.`,
  );

describe("writes to Anthropic's cache, which are billed", () => {
  const anthropic = anthropicServer();
  const source = answeringSource([]);
  const app = servedApp({
    source: () => source,
    upstream: anthropic,
    environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  });
  afterEach(() => void vi.useRealTimers());

  it("are the instructions' alone of a conversation whose turns came too late twice in a row, until one comes in time", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const history: object[] = [];
    const marks: number[] = [];
    for (const minutes of [0, 6, 6, 6, 1, 1]) {
      vi.setSystemTime(Date.now() + 60_000 * minutes);
      source.found = factsOf(marks.length);
      history.push({ role: "user", content: `What of ${marks.length}?` });
      const memprefix = { user_id: "ada", conversation_id: "slow" };
      const body = { model: "claude-opus-4-8", max_tokens: 9, system: SYSTEM, messages: history, memprefix };
      expect((await app.send("POST", "/v1/messages", body)).status).toBe(200);
      marks.push(JSON.stringify(anthropic.calls.at(-1)?.body).match(/"cache_control"/g)?.length ?? 0);
      history.push({ role: "assistant", content: "Green tea." });
    }
    expect(marks.map((count) => count > 1)).toEqual([true, true, false, false, true, true]);
    expect(marks[2]).toBe(1);
  });
});
