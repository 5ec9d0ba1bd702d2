import type { ServerResponse } from "node:http";
import { describe, expect, it, vi } from "vitest";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { openAiEngine, openEvents, sendJson } from "./openai-engine.js";
import { storedExchanges } from "./stored-rows.js";

type Usage = Readonly<Record<string, unknown>> | null | undefined;
/** What is known of a prompt: its tokens, and how many were cached. */
type Known = readonly [promptTokens: number | null, cachedTokens: number | null];

interface ReportingApi {
  readonly path: string;
  readonly body: object;
  whole(usage: Usage): object;
  /** @param first an earlier report of the stream */
  events(usage: Usage, first: Usage): readonly object[];
  readonly reports: readonly (readonly [usage: Usage, known: Known, first?: Usage])[];
}

const messages = [{ role: "user", content: "Which tea?" }];
const NOTHING: Known = [null, null];

const OPENAI_CHAT: ReportingApi = {
  path: "chat/completions",
  body: { user: "ada", messages },
  whole: (usage) => ({
    choices: [{ index: 0, message: { role: "assistant", content: "Tea." }, finish_reason: "stop" }],
    usage,
  }),
  events: (usage, first) => [
    { choices: [{ index: 0, delta: { content: "Tea." }, finish_reason: null }], usage: first ?? null },
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage },
  ],
  reports: [
    [{ prompt_tokens: 90, prompt_tokens_details: { cached_tokens: 64 } }, [90, 64]],
    [{ prompt_tokens: 90, prompt_tokens_details: { cached_tokens: 0 } }, [90, 0]],
    [{ prompt_tokens: 90, prompt_tokens_details: { cached_tokens: null } }, [90, null]],
    [{ prompt_tokens: 90, prompt_tokens_details: null }, [90, null]],
    [{ prompt_tokens: 90 }, [90, null]],
    [{ prompt_tokens: 90, prompt_tokens_details: { cached_tokens: "64" } }, [90, null]],
    [{ prompt_tokens: "90", prompt_tokens_details: {} }, NOTHING],
    [{ prompt_tokens: 0, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } }, NOTHING],
    [
      { prompt_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } },
      [90, 64],
      { prompt_tokens: 90, prompt_tokens_details: { cached_tokens: 64 } },
    ],
    [{ prompt_tokens: 90 }, [90, null], { prompt_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } }],
    [{ prompt_tokens: 9.5, prompt_tokens_details: { cached_tokens: -1 } }, NOTHING],
    [{}, NOTHING],
    [null, NOTHING],
  ],
};

const ANTHROPIC: ReportingApi = {
  path: "messages",
  body: { metadata: { user_id: "ada" }, max_tokens: 9, messages },
  whole: (usage) => ({
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Tea." }],
    stop_reason: "end_turn",
    usage,
  }),
  events: (usage, first) => [
    {
      type: "message_start",
      message: {
        type: "message",
        role: "assistant",
        content: [],
        usage: first ?? { input_tokens: 0, output_tokens: 1 },
      },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Tea." } },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
    { type: "message_stop" },
  ],
  reports: [
    [{ input_tokens: 20, cache_read_input_tokens: 64, cache_creation_input_tokens: 6, output_tokens: 2 }, [90, 64]],
    [{ input_tokens: 90, output_tokens: 2 }, [90, null]],
    [
      { input_tokens: 90, cache_read_input_tokens: null, cache_creation_input_tokens: null, output_tokens: 2 },
      [90, null],
    ],
    [{ input_tokens: 90, cache_read_input_tokens: 0, output_tokens: 2 }, [90, 0]],
    [{ input_tokens: 84, cache_read_input_tokens: null, cache_creation_input_tokens: 6, output_tokens: 2 }, [90, null]],
    [{ input_tokens: 0, cache_read_input_tokens: 90, output_tokens: 2 }, [90, 90]],
    [{ input_tokens: 90, cache_read_input_tokens: "64", output_tokens: 2 }, [90, null]],
    [{ input_tokens: "90", output_tokens: 2 }, NOTHING],
    [{ input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 0 }, NOTHING],
    [{ output_tokens: 2 }, NOTHING],
    [{ output_tokens: 2 }, [90, 64], { input_tokens: 26, cache_read_input_tokens: 64, output_tokens: 1 }],
    [
      { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 2 },
      [90, 64],
      { input_tokens: 26, cache_read_input_tokens: 64, output_tokens: 1 },
    ],
    [
      { input_tokens: 26, cache_read_input_tokens: 64, output_tokens: 2 },
      [90, 64],
      { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
    ],
    [null, NOTHING],
  ],
};

const OPENAI_RESPONSES: ReportingApi = {
  path: "responses",
  body: { user: "ada", input: "Which tea?" },
  whole: (usage) => ({ id: "r-1", object: "response", status: "completed", output: [], usage }),
  events: (usage) => [
    { type: "response.created", response: { id: "r-1", object: "response", status: "in_progress", output: [] } },
    { type: "response.output_text.delta", delta: "Tea." },
    { type: "response.completed", response: { id: "r-1", object: "response", status: "completed", output: [], usage } },
  ],
  reports: [
    [{ input_tokens: 90, input_tokens_details: { cached_tokens: 64 } }, [90, 64]],
    [{ input_tokens: 90, input_tokens_details: { cached_tokens: null } }, [90, null]],
    [{ input_tokens: 90, input_tokens_details: null }, [90, null]],
    [{ input_tokens: 90 }, [90, null]],
    [{ input_tokens: 90, input_tokens_details: { cached_tokens: "64" } }, [90, null]],
    [{ input_tokens: "90" }, NOTHING],
    [{ input_tokens: 0, output_tokens: 0, input_tokens_details: { cached_tokens: 0 } }, NOTHING],
    [null, NOTHING],
  ],
};

describe.each([OPENAI_CHAT, ANTHROPIC, OPENAI_RESPONSES])("usage as reported by $path", (api) => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  const sent = (response: ServerResponse, usage: Usage, first: Usage) => {
    openEvents(response);
    for (const event of api.events(usage, first)) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end(api.path === "messages" ? "" : "data: [DONE]\n\n");
  };

  const reports = api.reports.map(([usage, known, first]) => ({ usage, known, first }));
  it.each(reports)("$usage is known as $known, after $first", async ({ usage, known, first }) => {
    const [promptTokens, cachedTokens] = known;
    for (const stream of first === undefined ? [false, true] : [true]) {
      engine.behave((_request, response) =>
        stream ? sent(response, usage, first) : sendJson(response, 200, api.whole(usage)),
      );
      const { status, headers } = await sendWith(app, {}, "POST", `/v1/${api.path}`, {
        model: "m",
        ...api.body,
        stream,
      });
      expect(status).toBe(200);
      if (!stream)
        expect(headers.get("x-memprefix-cached-tokens")).toBe(cachedTokens === null ? null : `${cachedTokens}`);
      await vi.waitFor(() => {
        const { requests } = storedExchanges(app.database);
        const newest = requests.at(-1)?.observed as { promptTokens?: number; cachedTokens?: number } | null | undefined;
        expect([newest?.promptTokens ?? null, newest?.cachedTokens ?? null]).toEqual([promptTokens, cachedTokens]);
      });
    }
    expect(app.faults).toEqual([]);
  });
});
