// Attacked: the event loop, by bodies of up to 4 MiB whose reading takes the square of their length, or more stack than there is.
// Broke, and is mended: half sections in a question that is written back; runs of white space in the token count; deep nesting; a million
// empty parts. Held: token counts of long words, the sentence encoder, section labels, JSON of quotes and backslashes, 10,000 messages.
import { describe, expect, it } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";

/** Seconds of processor time that client, engine and service together may take; what takes the square took minutes. */
const MOST_S = 8;
const repeated = (piece: string, characters: number) =>
  piece.repeat(Math.ceil(characters / piece.length)).slice(0, characters);
const chat = (content: unknown, more: object = {}) => ({
  ...{ model: "m", user: "ada", messages: [{ role: "user", content }], memprefix: { write_back: true, memories: [] } },
  ...more,
});
const compose = (more: object) => ({ user_id: "ada", query: "Where?", memories: [], ...more });

const attacks: Readonly<Record<string, readonly [path: string, status: number, body: () => object]>> = {
  "half sections in a question": ["/v1/chat/completions", 200, () => chat(repeated("<memories>\n", 900_000))],
  "half sections in blocks": [
    "/v1/chat/completions",
    200,
    () => chat(repeated("<memories>\n- tea <memories>\n", 900_000)),
  ],
  "line breaks": ["/compose", 200, () => compose({ query: `tea${repeated("\n", 900_000)}?` })],
  "spaces in a memory": [
    "/compose",
    200,
    () => compose({ memories: [{ id: "m", memory: `a${repeated(" ", 90_000)}b` }] }),
  ],
  "brackets in memories": [
    "/compose",
    200,
    () =>
      compose({
        memories: Array.from({ length: 10 }, (_, at) => ({
          id: `${at}`,
          memory: at + repeated("<[[A<\u200b", 90_000),
        })),
      }),
  ],
  "a million empty parts": [
    "/compose",
    422,
    () => compose({ messages: [{ role: "user", content: Array.from({ length: 1_000_000 }, () => ({})) }] }),
  ],
  "one letter": ["/compose", 200, () => compose({ query: repeated("a", 900_000) })],
  "combining marks": [
    "/compose",
    200,
    () => compose({ memories: [{ id: "m", memory: `a${repeated("\u0301", 500_000)}` }] }),
  ],
};

describe("one request", () => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({
    source: () => source,
    environment: {
      get MEMPREFIX_UPSTREAM_URL() {
        return engine.url;
      },
    },
  });

  it.each(Object.entries(attacks))(
    "does not freeze the service: %s",
    async (_what, [path, expected, body]) => {
      const json = JSON.stringify(body());
      const start = process.cpuUsage();
      const { status, text } = await app.send("POST", path, new TextEncoder().encode(json), "application/json");
      const { user, system } = process.cpuUsage(start);
      expect(status, text.slice(0, 300)).toBe(expected);
      expect((user + system) / 1e6).toBeLessThan(MOST_S);
      if (expected >= 400) expect(text.length).toBeLessThan(20_000);
      expect(app.faults).toEqual([]);
    },
    60_000,
  );
});
