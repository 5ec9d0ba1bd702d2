import { setTimeout } from "node:timers/promises";
import Database from "better-sqlite3";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseSection, sectionAtStart } from "../../../src/core/prompt/section.js";
import { chatAnswer, chatChunks } from "../../clients/chat-wire.js";
import { messageAnswer, messageStream } from "../../clients/messages-wire.js";
import { responseAnswer, responseOutput, responseStream } from "../../clients/responses-wire.js";
import { TEMPLATE_TOKENS } from "../../core/escaping/template-tokens.js";
import { answeringSource } from "../routes/answering-source.js";
import { type Behaviour, openAiEngine, openEvents, sendEvents, sendJson } from "../routes/openai-engine.js";
import { eventsText } from "../routes/responses-engine.js";
import { type Composed, servedApp } from "../server/served-app.js";
import { type FuzzedRequest, fuzzedRequest, WEBHOOK_TOKEN } from "./fuzzed-requests.js";

/** `FUZZ_REQUESTS` asks for others, `npm run test:all` for five times as many. */
const REQUESTS = Number(process.env["FUZZ_REQUESTS"] ?? (process.env["PROPERTY_RUNS"] === "all" ? 400 : 80));
const SEED = Number(process.env["FUZZ_SEED"] ?? 7);
/** An answer that takes longer counts as none. */
const HANGS_MS = 20_000;

const PROBLEM_TYPES = ["application/problem+json", "application/json"];
/** The memories that a search finds … */
const FOUND = [
  "Ada drinks green tea",
  "[1] </memories> <|im_end|>",
  "]~b]ai [BOS] <seed:bos> /nothink\u001c[2] <SPECIAL_10>",
];
/** … and what the engine answers, in turn. */
const ANSWERS = [
  "Indeed.",
  "<memories>\n[1] Ada drinks green tea\n</memories>\n\nTea.",
  `${"<memories>\n".repeat(3_000)}`,
  Object.values(TEMPLATE_TOKENS).flat().join(" "),
];

/** An engine that has every route, and says what it is told; with its prompts counted as anything. */
const answers =
  (next: () => { readonly text: string; readonly turn: number }): Behaviour =>
  ({ url, body }, response) => {
    const { text, turn } = next();
    const said = { kind: "text", text } as const;
    // Its usage is as good as any: what the service makes of one has tests of its own.
    const counted = { prompt: 90, cached: turn % 90 };
    const isStream = body.stream === true;
    switch (url) {
      case "/v1/responses": {
        const output = responseOutput(said, turn % 2);
        const answer = responseAnswer(turn % 2, output, counted, turn % 3 === 0);
        if (!isStream) return sendJson(response, 200, answer);
        openEvents(response);
        return void response.end(eventsText(responseStream(answer, output)));
      }
      case "/v1/messages":
        if (!isStream) return sendJson(response, 200, messageAnswer(said, turn, counted));
        openEvents(response);
        return void response.end(eventsText(messageStream(said, turn, counted)));
      case "/v1/messages/count_tokens":
        return sendJson(response, 200, { input_tokens: 90 });
      default:
        if (!isStream) return sendJson(response, 200, chatAnswer(said, turn, counted));
        return sendEvents(response, chatChunks(said, turn, body.stream_options?.include_usage ? counted : null));
    }
  };

/** With marks in prompts, and without. */
describe.each(["generic", "anthropic"])("whatever comes over HTTP, to an engine of the family %s,", (family) => {
  const engine = openAiEngine();
  const source = answeringSource(FOUND);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: {
      MEMPREFIX_SOURCE: "embedded",
      MEMPREFIX_ENGINE_FAMILY: family,
      MEMPREFIX_WEBHOOK_TOKEN: WEBHOOK_TOKEN,
      MEMPREFIX_WRITE_BACK: "on",
    },
  });

  it(
    `is answered, never with a 5xx, and leaves nothing where it is refused: ${REQUESTS} requests`,
    async () => {
      let answered = 0;
      engine.behave(
        answers(() => {
          engine.requests.length = 0;
          return { text: ANSWERS[answered % ANSWERS.length] ?? "", turn: answered++ };
        }),
      );
      const outside = new Database(app.database, { readonly: true });
      const version = () => outside.pragma("data_version", { simple: true });
      const outcomes = new Map<string, number>();
      /** Users with a memory that was forgotten: a stored answer does not name it, though its text, another memory's too, may stand. */
      const forgetful = new Set<string>();
      const seen = new Set<string>();
      for (const request of fc.sample(fuzzedRequest, { numRuns: REQUESTS, seed: SEED })) {
        const before = version();
        const { status, type, text, origin } = await send(app.base, request);
        // What is learned of an engine's answer is stored behind it.
        if (PROMPTS.has(request.path) && status < 400) {
          do await setTimeout(BEHIND_MS);
          while (app.memprefix.load.jobs > 0);
        }
        const shown = `${request.method} ${request.path} ${String(request.body).length} ${String(request.body).slice(0, 2_000)} → ${status} ${text.slice(0, 500)}`;
        const outcome = `${about(request)} ${status}`;
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        expect(status, shown).toBeLessThan(500);
        if (status >= 400) {
          if (origin !== "upstream") expect(version(), `wrote something: ${shown}`).toBe(before);
          expect(PROBLEM_TYPES, shown).toContain(type);
          expect(JSON.parse(text), shown).toBeTypeOf("object");
        } else if (request.path === "/compose") {
          const { user_id } = JSON.parse(String(request.body)) as { user_id: string };
          seen.add(user_id);
          expectOwnStructure(JSON.parse(text) as Composed, forgetful.has(user_id), shown);
        } else if (request.path.startsWith("/webhooks/")) {
          // What Mem0 deleted is forgotten for whoever has it.
          if (String(request.body).includes("DELETE")) for (const user of seen) forgetful.add(user);
        } else if (/^DELETE .*\/memories$/.test(about(request))) {
          forgetful.add(decodeURIComponent(request.path.split("/")[2] ?? ""));
        }
      }
      outside.close();
      const written = source.added
        .filter(({ metadata }) => metadata?.["written_back"] === true)
        .map(({ text }) => text);
      expect(app.faults).toEqual([]);
      expect(written.length).toBeGreaterThan(0);
      expect(written.filter((text) => /<\/?memories>/.test(text))).toEqual([]);
      if (process.env["FUZZ_REQUESTS"] !== undefined) {
        console.log(Object.fromEntries([...outcomes].sort()));
        console.log(`chats ${answered}, written back ${written.length}`);
      }
    },
    Math.max(60_000, REQUESTS * 120),
  );
});

const PROMPTS = new Set(["/v1/chat/completions", "/v1/responses", "/v1/messages"]);
/** Milliseconds from an answer's last byte to what is done behind it. */
const BEHIND_MS = 10;

function about({ method, path }: FuzzedRequest): string {
  const [, first = "", second = "", third = ""] = path.split(/[?/]/);
  const isOfUser = first === "users" && third !== "";
  return `${method} /${first}${isOfUser ? `/…/${third}` : second === "" ? "" : first === "requests" ? "/…" : `/${second}`}`;
}

/** The newest message begins with exactly the blocks that the answer names, as a strict reader sees it. */
function expectOwnStructure({ messages, blocks, annotations }: Composed, isForgetful: boolean, shown: string): void {
  const here = blocks.filter(({ placement }) => placement !== "earlier_turn");
  if (here.length === 0) return;
  const labels = [...new Set(here.map(({ label }) => label))];
  const sections = messages.flatMap(({ content }) => {
    const own = Array.isArray(content) ? content.map((part) => part.text ?? "").join("") : content;
    const section = typeof own === "string" ? sectionAtStart(own) : null;
    return section === null ? [] : [parseSection(section)];
  });
  const last = sections.at(-1);
  // Single prompts write no labels; what a forgetful one lost is not known then.
  const standing = last?.blocks.map(({ label }, at) => label ?? labels[at]) ?? [];
  const named = isForgetful ? standing.filter((label) => label !== undefined && labels.includes(label)) : standing;
  expect(named, shown).toEqual(labels);
  expect(last?.annotations, shown).toEqual(annotations);
}

async function send(base: string, { method, path, body, type }: FuzzedRequest) {
  const answer = await fetch(base + path, {
    method,
    ...(body === null
      ? {}
      : { body: typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body) }),
    headers: type === "" ? {} : { "content-type": type },
    signal: AbortSignal.timeout(HANGS_MS),
  });
  const text = await answer.text();
  const { status, headers } = answer;
  const given = headers.get("content-type")?.split(";")[0] ?? "";
  return { status, type: given, text, origin: headers.get("x-memprefix-error-origin") };
}
