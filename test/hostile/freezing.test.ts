// Attacked: the event loop, by bodies of up to 4 MiB whose reading takes the square of their length, or more stack than there is.
// Broke, and is mended: half sections in a question that is written back; runs of white space in the token count; deep nesting; a million
// empty parts. Held: token counts of long words, the sentence encoder, section labels, JSON of quotes and backslashes, 10,000 messages.
import { describe, expect, it } from "vitest";
import { cpuTimer } from "../cpu-time.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";

/** Milliseconds of processor time that client, engine and service together may take; what takes the square took minutes. */
const MOST_MS = 8_000;
const repeated = (piece: string, characters: number) =>
  piece.repeat(Math.ceil(characters / piece.length)).slice(0, characters);
const COMPOSE = "/compose";
const CHAT = "/v1/chat/completions";
const chat = (content: string) => ({
  ...{ model: "m", user: "ada", messages: [{ role: "user", content }], memprefix: { write_back: true, memories: [] } },
});
const compose = (more: object) => ({ user_id: "ada", query: "Where?", memories: [], ...more });
const remembering = (...texts: string[]) => compose({ memories: texts.map((memory, at) => ({ id: `${at}`, memory })) });

const ATTACKS: readonly (readonly [what: string, path: string, body: () => object])[] = [
  ["half sections in a question", CHAT, () => chat(repeated("<memories>\n", 900_000))],
  ["half sections in blocks", CHAT, () => chat(repeated("<memories>\n- tea <memories>\n", 900_000))],
  ["line breaks", COMPOSE, () => compose({ query: `tea${repeated("\n", 900_000)}?` })],
  ["one letter", COMPOSE, () => compose({ query: repeated("a", 900_000) })],
  ["spaces in a memory", COMPOSE, () => remembering(`a${repeated(" ", 90_000)}b`)],
  ["combining marks", COMPOSE, () => remembering(`a${repeated("\u0301", 500_000)}`)],
  [
    "brackets in memories",
    COMPOSE,
    () => remembering(...Array.from({ length: 10 }, (_, at) => at + repeated("<[[A<\u200b", 90_000))),
  ],
];

describe("one request", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource([]), upstream: engine });

  const answerTo = async (path: string, body: object) => {
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    const timer = cpuTimer();
    const answer = await app.send("POST", path, bytes, "application/json");
    expect(timer()).toBeLessThan(MOST_MS);
    expect(app.faults).toEqual([]);
    return answer;
  };

  it.each(ATTACKS)("does not freeze the service: %s", { timeout: 60_000 }, async (_what, path, body) => {
    expect(await answerTo(path, body())).toMatchObject({ status: 200 });
  });

  it("does not freeze the service by a million empty parts, and is refused in short", async () => {
    const content = Array.from({ length: 1_000_000 }, () => ({}));
    const { status, text } = await answerTo(COMPOSE, compose({ messages: [{ role: "user", content }] }));
    expect([status, text.length < 20_000]).toEqual([422, true]);
  });
});
