import { once } from "node:events";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { eventOf, openAiEngine, openEvents, streamedAnswer } from "./openai-engine.js";

const MIB = 1024 * 1024;
const EVENT = eventOf(streamedAnswer("tea-".repeat(16 * 1024), null)[1] ?? {});
const EVENTS = (4 * 24 * MIB) / (64 * 1024);
/** More than sockets hold on the way; the stream is four times as long. */
const ON_THE_WAY = 24 * MIB;

describe("a client that reads slowly", () => {
  const engine = openAiEngine();
  const app = servedApp({
    upstream: engine,
  });

  /** An answer of which only the beginning was read, when nothing moves any longer; and how much was taken of the engine. */
  async function stalled() {
    const progress = { taken: 0, ended: false };
    engine.behave((_call, response) => {
      openEvents(response);
      void (async () => {
        for (let n = 0; n < EVENTS && !response.destroyed; n++) {
          await drained(response, EVENT);
          progress.taken += EVENT.length;
        }
        if (response.destroyed) return;
        response.end("data: [DONE]\n\n");
        progress.ended = true;
      })();
    });
    const body = JSON.stringify({ messages: [{ role: "user", content: "Which tea?" }], stream: true, user: "ada" });
    const headers = { connection: "close", "content-type": "application/json" };
    const outgoing = request(`${app.base}/v1/chat/completions`, { method: "POST", headers });
    outgoing.end(body);
    const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    await once(answer, "readable");
    for (let before = -1; before !== progress.taken; ) {
      before = progress.taken;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    return { answer, progress };
  }

  it("slows the engine down: of a long stream little more is taken than is read, and nothing is lost", async () => {
    const { answer, progress } = await stalled();
    expect(progress.ended).toBe(false);
    expect(progress.taken).toBeLessThan(ON_THE_WAY);
    let read = 0;
    let end = "";
    for await (const bytes of answer as AsyncIterable<Buffer>) {
      read += bytes.length;
      end = (end + bytes.toString("latin1")).slice(-14);
    }
    expect(read).toBe(EVENT.length * EVENTS + "data: [DONE]\n\n".length);
    expect(end).toBe("data: [DONE]\n\n");
    expect(app.faults).toEqual([]);
  });

  it("and goes away ends the engine's call, though nothing moved", async () => {
    const { answer } = await stalled();
    answer.on("error", () => {}).destroy();
    await engine.requests[0]?.abandoned;
    expect(app.faults).toEqual([]);
  });
});

function drained(response: ServerResponse, text: string): Promise<void> {
  return new Promise((go) => {
    if (response.write(text)) return go();
    const done = () => {
      response.off("drain", done).off("close", done);
      go();
    };
    response.once("drain", done).once("close", done);
  });
}
