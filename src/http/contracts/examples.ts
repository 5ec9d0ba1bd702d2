/*
 * Examples for the OpenAPI document, by operation id. Those of the user `ana` follow each other: a conversation's first turn, what the
 * engine reported of it, what is stored then. A test sends the requests and compares the answers.
 */

import { USAGE_EXAMPLES } from "./usage-examples.js";

/** The body of a request, if the operation has one, and of its answer. */
export interface Example {
  readonly request?: unknown;
  readonly answer?: unknown;
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  ...USAGE_EXAMPLES,
  compose: {
    request: {
      user_id: "ana",
      conversation_id: "trip",
      request_id: "trip-1",
      messages: [
        { role: "system", content: "You plan trips." },
        { role: "user", content: "Where do we eat tonight?" },
      ],
      memories: {
        results: [
          { id: "m-1", memory: "Ana is a vegetarian", score: 0.83 },
          { id: "m-2", memory: "Ana lives in Lisbon", score: 0.71 },
        ],
      },
    },
    answer: {
      request_id: "trip-1",
      messages: [
        { role: "system", content: "You plan trips." },
        {
          role: "user",
          content: "<memories>\n1 Ana is a vegetarian\n2 Ana lives in Lisbon\n</memories>\n\nWhere do we eat tonight?",
        },
      ],
      blocks: [
        { label: 1, memory_id: "m-1", placement: "new", rank: 0, replaces: [] },
        { label: 2, memory_id: "m-2", placement: "new", rank: 1, replaces: [] },
      ],
      annotations: [],
      plan: {
        layout: "conversation",
        policy: "prefix-exact",
        expected_cached_tokens: 0,
        uncached_tokens: 38,
        total_tokens: 38,
        search_path: [],
        order_changed: false,
        stable_messages: 0,
        retention: "keep",
        fresh_start: false,
      },
      engine: { fields: {}, headers: { "x-request-id": "trip-1" } },
      warnings: [],
    },
  },
  feedback: {
    request: { user_id: "ana", request_id: "trip-1", prompt_tokens: 60, cached_tokens: 0, ttft_ms: 45.2 },
    answer: {
      request_id: "trip-1",
      expected_cached_tokens: 0,
      observed_cached_tokens: 0,
      difference: 0,
      corrected: { tokens_removed: 0 },
    },
  },
  getIndex: {
    answer: {
      user_id: "ana",
      agent_id: null,
      counts: { conversations: 1, turns: 1, requests: 1, blocks: 2, nodes: 2 },
      nodes: [
        {
          search_path: [],
          labels: [],
          uses: 1,
          live_requests: 0,
          last_used: 1,
          used_at: 1793426450000,
          tokens: 12,
          total_tokens: 12,
          is_expected: true,
          request_ids: [],
        },
        {
          search_path: [0],
          labels: [1, 2],
          uses: 1,
          live_requests: 1,
          last_used: 1,
          used_at: 1793426450000,
          tokens: 12,
          total_tokens: 24,
          is_expected: true,
          request_ids: ["trip-1"],
        },
      ],
    },
  },
  explainRequest: {
    answer: {
      request_id: "trip-1",
      explanation: [
        "Request trip-1 is the first prompt of its user and agent. There was no prefix to reuse: all of its 38 tokens had to be computed.",
        "The engine reported 0 cached tokens, as expected.",
      ],
      cause: { kind: "first_prompt" },
      compared: 0,
      compared_all: true,
      nearest: null,
      difference: null,
      tokens: { total: 38, shared: 0, expected: 0, reported: 0 },
      index: { kind: "nothing_shared" },
      engine: { kind: "as_expected" },
      lost: { tokens: 0, price: { unit: "ms", amount: 0 } },
      behind: { tokens: 0, price: { unit: "ms", amount: 0 } },
    },
  },
  evict: { request: { request_ids: ["trip-1", "trip-9"] }, answer: { evicted: ["trip-1"], unknown: ["trip-9"] } },
  composeBatch: {
    request: {
      workers: ["gpu-0"],
      requests: [
        {
          user_id: "ben",
          request_id: "ben-1",
          query: "Which tea?",
          memories: [{ id: "m-7", memory: "Ben drinks green tea" }],
          priority: 1,
        },
      ],
    },
    answer: {
      answers: [
        {
          index: 0,
          rank: 0,
          worker: "gpu-0",
          answer: {
            request_id: "ben-1",
            messages: [{ role: "user", content: "<memories>\n1 Ben drinks green tea\n</memories>\n\nWhich tea?" }],
            blocks: [{ label: 1, memory_id: "m-7", placement: "new", rank: 0, replaces: [] }],
            annotations: [],
            plan: {
              layout: "single",
              policy: "prefix-exact",
              expected_cached_tokens: 0,
              uncached_tokens: 21,
              total_tokens: 21,
              search_path: [],
              order_changed: false,
              stable_messages: 0,
              retention: "keep",
              fresh_start: false,
            },
            engine: {
              fields: {},
              headers: { "x-request-id": "ben-1", "x-smg-routing-key": "gpu-0", "x-dynamo-session-id": "gpu-0" },
            },
            worker: "gpu-0",
            warnings: [],
          },
        },
      ],
      end: { read: 1, found: 1, composed: 1, failed: 0 },
    },
  },
  createChatCompletion: {
    request: {
      model: "qwen3-8b",
      user: "ana",
      messages: [{ role: "user", content: "Where do we eat tonight?" }],
      memstem: { conversation_id: "trip" },
    },
    answer: {
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1763769600,
      model: "qwen3-8b",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "At a vegetarian place in Alfama." },
          finish_reason: "stop",
        },
      ],
      usage: {
        prompt_tokens: 60,
        completion_tokens: 9,
        total_tokens: 69,
        prompt_tokens_details: { cached_tokens: 48 },
      },
    },
  },
  createResponse: {
    request: {
      model: "gpt-oss-20b",
      user: "ana",
      instructions: "You plan trips.",
      input: "Where do we eat tonight?",
      memstem: { conversation_id: "trip" },
    },
    answer: {
      id: "resp_1",
      object: "response",
      created_at: 1763769600,
      status: "completed",
      model: "gpt-oss-20b",
      output: [
        {
          id: "msg_1",
          type: "message",
          status: "completed",
          role: "assistant",
          content: [{ type: "output_text", text: "At a vegetarian place in Alfama.", annotations: [] }],
        },
      ],
      usage: {
        input_tokens: 60,
        input_tokens_details: { cached_tokens: 48 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 69,
      },
    },
  },
  listModels: {
    answer: { object: "list", data: [{ id: "qwen3-8b", object: "model", created: 1763769600, owned_by: "vllm" }] },
  },
  createMessage: {
    request: {
      model: "claude-opus-4-8",
      max_tokens: 256,
      metadata: { user_id: "ana" },
      messages: [{ role: "user", content: "Where do we eat tonight?" }],
      memstem: { conversation_id: "trip" },
    },
    answer: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-opus-4-8",
      content: [{ type: "text", text: "At a vegetarian place in Alfama." }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: {
        input_tokens: 12,
        cache_read_input_tokens: 48,
        cache_creation_input_tokens: 0,
        output_tokens: 9,
      },
    },
  },
  countMessageTokens: {
    request: { model: "claude-opus-4-8", messages: [{ role: "user", content: "Where do we eat tonight?" }] },
    answer: { input_tokens: 14 },
  },
  addMemories: {
    request: { user_id: "ana", memories: ["Ana rides a bicycle"] },
    answer: { results: [{ id: "3f0c9d52-6d0e-4a57-9f2c-0d6a1b7f3c11", memory: "Ana rides a bicycle" }] },
  },
  forgetMemory: { answer: { memory_id: "m-2", labels: [2], deleted_from_source: null } },
  receiveMem0Event: { request: { event_details: { event: "DELETE", id: "m-2" } } },
  forgetUser: { answer: { user_id: "ana", scopes: 1 } },
  exportUser: { answer: { user_id: "ana", scopes: [], usage: [], forgotten_memories: [], source: null } },
  getLiveness: { answer: { status: "ok", version: "0.1.0", source: null } },
  getHealth: { answer: { status: "ok", version: "0.1.0", source: null } },
};

/** The example of an operation; with neither part if there is none. With ids in the query, answers are the same. */
export function exampleOf({ operationId }: { readonly operationId: string }): Example {
  return EXAMPLES[operationId.replace(/ByQuery$/, "")] ?? {};
}
