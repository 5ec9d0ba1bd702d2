import { z } from "zod";
import {
  blockTemplateProblem,
  DEDUPE_NAMES,
  DEFAULT_BLOCK_TEMPLATE,
  DEFAULT_DEDUPE,
  DEFAULT_HISTORY,
  DEFAULT_HISTORY_NAMES,
  DEFAULT_POLICY,
  DEFAULT_RETENTION,
  DEFAULT_TIME_ZONE,
  ENGINE_MODEL_NAMES,
  POLICY_NAMES,
  RETENTION_NAMES,
  TOOL_MEMORIES,
  timeZoneProblem,
} from "../core/index.js";
import { MARK_LIFETIMES } from "../engines/adapters/anthropic.js";
import { ENGINE_NAMES } from "../engines/adapters/engine-adapter.js";
import { kvEventSources } from "../engines/upstream/kv-events.js";
import { DEFAULT_TOP_K } from "../service/compose/compose-request.js";
import { mem0Name, workers } from "../service/fields/fields.js";
import { DEFAULT_USAGE_BOUNDS } from "../store/api/usage-log.js";
import { identitySources, sessionRouter } from "./session-settings.js";
import { adaptiveDepth, engineModel, memoryFilters } from "./structured-settings.js";

const url = z.url({ protocol: /^https?$/, error: "must be an http or https address" });
const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));

const checkedBy = (problemOf: (text: string) => string | null) => (text: string, context: z.RefinementCtx) => {
  const problem = problemOf(text);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
};

const origins = z.string().transform((text) => text.split(",").map((origin) => origin.trim()));
/** As browsers write it: `https://app.example.org`. */
const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text,
    "must be origins as https://app.example.org, separated by commas",
  );
/** Text of at least one character. */
const text = z.string().min(1);
const onOrOff = z.enum(["on", "off"]);

/**
 * Every setting, one row each: its name, how its text is read, its default and what it means. The environment variable follows from the name
 * ({@link variableOf}); `memstem serve --help` and docs/settings.md are made from this table, in its order.
 */
export const SETTINGS = {
  host: text
    .default("127.0.0.1")
    .describe("address to listen on; without API keys the loopback only (see memstem keys --help)"),
  port: wholeNumber(0, 65_535).default(4600).describe("port to listen on; 0 takes a free one"),
  dataDir: text.default("memstem-data").describe("directory of memstem's files"),
  databaseUrl: z
    .url({ protocol: /^postgres(?:ql)?$/, error: "must be a postgres:// address" })
    .optional()
    .describe(
      "PostgreSQL database that many instances share, postgres://user:password@host:port/name; default: a file in MEMSTEM_DATA_DIR",
    ),
  logLevel: z
    .enum(["silent", "error", "warn", "info", "debug"])
    .default("info")
    .describe("silent, error, warn, info or debug; logs go to standard error and hold no memory text"),
  shutdownMs: wholeNumber(0, 3_600_000)
    .default(10_000)
    .describe("time-out of running requests, streams included, after SIGTERM, in ms"),
  corsOrigins: origins
    .pipe(z.array(origin))
    .optional()
    .describe("CORS origins, as https://app.example.org, separated by commas; default: none"),
  webhookToken: z
    .string()
    .min(16, "must have at least 16 characters")
    .optional()
    .describe("bearer token for POST /webhooks/mem0, 16 characters or more; default: no such route"),
  apiKey: z
    .string()
    .regex(/^[!-~]{32,256}$/, "must be 32 to 256 printable ASCII characters without spaces")
    .optional()
    .describe("an API key of the tenant default, beside those of memstem keys; 32 to 256 characters; default: none"),
  source: z
    .enum(["embedded", "hosted", "rest", "none"])
    .optional()
    .describe(
      "embedded, hosted, rest or none; default: rest with a URL, hosted with only a key, else embedded where its packages are installed, else none",
    ),
  mem0Url: url.optional().describe("address of Mem0's REST server, or of another Mem0 platform"),
  mem0ApiKey: text.optional().describe("Mem0's API key"),
  mem0Threshold: z.coerce
    .number("must be a number")
    .min(0)
    .max(1)
    .optional()
    .describe("minimum similarity of memories to the query, 0 to 1; default: Mem0's own"),
  mem0AppId: mem0Name
    .optional()
    .describe("application of Mem0's whose memories are searched where a request names none; default: any"),
  mem0Filters: memoryFilters
    .optional()
    .describe('conditions of every search in Mem0\'s form, as JSON, such as {"topic": "food"}; default: none'),
  mem0Rerank: onOrOff
    .default("off")
    .describe("on or off: by default, have Mem0 rank what a search found once more, by its reranker"),
  mem0Check: onOrOff
    .default("on")
    .describe(
      "on or off: beside each search, ask Mem0 what became of memories that the conversation was given, at most 16",
    ),
  searchTimeoutMs: wholeNumber(1, 600_000)
    .default(2_000)
    .describe("time-out of a memory search, in ms, after which the prompt is composed without it"),
  policy: z
    .enum(POLICY_NAMES)
    .default(DEFAULT_POLICY)
    .describe(`default ordering policy: ${POLICY_NAMES.join(", ")}`),
  topK: wholeNumber(1, 1_000).default(DEFAULT_TOP_K).describe("default number of memories to search for"),
  retention: z
    .enum(RETENTION_NAMES)
    .default(DEFAULT_RETENTION)
    .describe(`default retention, what a conversation keeps of injected memories: ${RETENTION_NAMES.join(", ")}`),
  history: z
    .enum(DEFAULT_HISTORY_NAMES)
    .default(DEFAULT_HISTORY)
    .describe(
      "prompts of histories that the client cut: exact (its own messages only), extended (what it cut too, within the history ratio) or auto (the same where the engine's cost says that it pays)",
    ),
  toolMemories: z
    .enum(["auto", ...TOOL_MEMORIES])
    .default("auto")
    .describe(
      "memories after a tool's result: own_message, in_result, or auto (as the engine family and the model take them); see docs/engines.md",
    ),
  maxPromptTokens: wholeNumber(1, 100_000_000)
    .optional()
    .describe(
      "most tokens of a prompt, without the answer's; default: what the engine behind /v1 says that it takes, if it does",
    ),
  adaptiveDepth: adaptiveDepth
    .default(null)
    .describe(
      "off, on, or an object as JSON: send few memories first, and more while the engine is unsure of the first token of its answer",
    ),
  blockTemplate: z
    .string()
    .superRefine(checkedBy(blockTemplateProblem))
    .default(DEFAULT_BLOCK_TEMPLATE)
    .describe("what a prompt gives of a memory, as in [{date}: ]{memory}; see docs/blocks.md"),
  timeZone: z
    .string()
    .superRefine(checkedBy(timeZoneProblem))
    .default(DEFAULT_TIME_ZONE)
    .describe("IANA time zone of the times in MEMSTEM_BLOCK_TEMPLATE"),
  dedupe: z
    .enum(DEDUPE_NAMES)
    .default(DEFAULT_DEDUPE)
    .describe(
      "texts that a prompt gives once: contained (those that another memory or the question says too, as whole sentences) or exact (equal ones)",
    ),
  engineFamily: z
    .enum(ENGINE_NAMES)
    .default("generic")
    .describe(`default engine family of prompts: ${ENGINE_NAMES.join(", ")}`),
  cost: engineModel
    .optional()
    .describe(
      `cost model of the engine: ${ENGINE_MODEL_NAMES.join(", ")}, or an object as JSON; default: by the engine's family`,
    ),
  cacheMarkTtl: z
    .enum(MARK_LIFETIMES)
    .default("5m")
    .describe(
      "lifetime of memstem's cache marks for anthropic, 5m or 1h, where the client's own allow it; an hour costs more to write",
    ),
  cacheTtlSeconds: wholeNumber(1, 31_536_000)
    .optional()
    .describe("seconds that the engine's cache keeps a prefix after its last use; default: no limit"),
  cacheTokens: wholeNumber(1, 1_000_000_000_000)
    .optional()
    .describe(
      "tokens that the engine's cache holds, of all users; default: as the engine says, or learned from its reports",
    ),
  kvEvents: z
    .union([z.enum(["auto", "off"]), kvEventSources])
    .default("auto")
    .describe(
      "where the engine publishes events of its cache, as in tcp://127.0.0.1:5557?replay=5558, separated by commas; auto: where it says so itself; off: nowhere",
    ),
  cacheSlots: wholeNumber(1, 256)
    .optional()
    .describe(
      "prompts that the engine's cache keeps, the last of each slot, as in llama.cpp; default: the slots of the embedded engine, else no limit",
    ),
  workers: z
    .string()
    .transform((names) => names.split(",").map((name) => name.trim()))
    .pipe(workers)
    .optional()
    .describe(
      "names of engine replicas that a gateway routes prompts to by a header, separated by commas; see docs/ordering.md; default: none",
    ),
  upstreamUrl: url
    .optional()
    .describe("base URL of the OpenAI-compatible API behind /v1, as in http://127.0.0.1:8000/v1; default: none"),
  upstreamApi: z
    .enum(["openai", "anthropic"])
    .default("openai")
    .describe("the upstream's API: openai, or anthropic for Anthropic's own, to which chats are converted"),
  upstreamApiKey: text.optional().describe("the upstream's API key; default: the client's key is forwarded"),
  upstreamTimeoutMs: wholeNumber(1, 3_600_000)
    .default(600_000)
    .describe("time-out for the first byte of the upstream's answer, and between its bytes, in ms"),
  identity: identitySources
    .optional()
    .describe(
      "further places that name the user, agent or conversation of a request to /v1, or tell a client's side calls, first first, as in user=header:x-user,conversation=body:metadata.session_id; see docs/identity.md; default: none",
    ),
  router: sessionRouter
    .optional()
    .describe(
      "router in front of the upstream's replicas, which gets a key per conversation: sglang, dynamo, vllm-router, llm-d, litellm, bifrost, xai, openai, or header:NAME; default: none",
    ),
  writeBack: onOrOff
    .default("off")
    .describe("on or off: by default, store the questions and answers of chats and responses as memories"),
  warmUp: onOrOff
    .default("off")
    .describe(
      "on or off: during the memory search, let the engine compute the prompt's prefix if it is long and uncached",
    ),
  engine: z
    .enum(["none", "embedded"])
    .default("none")
    .describe("none or embedded: llama.cpp in this process, behind /v1; needs the package node-llama-cpp"),
  model: text.optional().describe("GGUF file of the embedded engine's model"),
  engineSlots: wholeNumber(1, 256)
    .default(4)
    .describe("slots of the embedded engine: its concurrent requests, and the prompts that it keeps cached"),
  contextTokens: wholeNumber(16, 16_777_216)
    .optional()
    .describe("maximum tokens of a prompt with its answer, per slot; default: the model's, at most 8192"),
  maxBodyBytes: wholeNumber(1_024, 1_073_741_824)
    .default(4 * 1024 * 1024)
    .describe("maximum bytes of a request body"),
  ratePerSecond: wholeNumber(1, 1_000_000)
    .optional()
    .describe("maximum average requests per second of one API key; default: no limit"),
  maxConcurrent: wholeNumber(1, 1_000_000)
    .optional()
    .describe("maximum concurrent requests of one API key, streams included; default: no limit"),
  maxPending: wholeNumber(1, 1_000_000)
    .default(1_024)
    .describe("maximum concurrent requests of the service; more are rejected"),
  maxLagMs: wholeNumber(1, 600_000).default(150).describe("maximum admission delay under overload, in ms"),
  keepDays: wholeNumber(1, 36_500)
    .optional()
    .describe("days after which unused conversations, prompts and memory texts are deleted; default: no limit"),
  maxWorkingMb: wholeNumber(1, 1_048_576)
    .default(128)
    .describe("maximum megabytes of working state in memory, estimated; the process needs about five times as much"),
  maxIndexNodes: wholeNumber(10, 10_000_000)
    .default(20_000)
    .describe("maximum nodes of one user's context index; the least recently used paths are evicted"),
  usagePrompts: wholeNumber(0, 100_000_000)
    .default(DEFAULT_USAGE_BOUNDS.prompts)
    .describe(
      "prompts whose figures are kept for the dashboard and GET /usage, for a month at most; 0: none are recorded; see docs/dashboard.md",
    ),
  dashboardText: onOrOff
    .default("off")
    .describe("on or off: show the text of memories and messages in the dashboard and in GET /usage/request"),
  alerts: text
    .optional()
    .describe(
      "JSON file of alert rules, such as a cached share that falls by a third within an hour; see docs/dashboard.md; default: none",
    ),
} as const;

/** The titles of docs/settings.md, by the first setting under each. */
export const SETTING_TITLES: Readonly<Partial<Record<keyof Settings, string>>> = {
  host: "The service",
  source: "Where memories come from",
  policy: "How prompts are composed",
  engineFamily: "The engine and its cache",
  upstreamUrl: "The proxy",
  engine: "The engine inside",
  maxBodyBytes: "Limits",
  keepDays: "What is kept",
  dashboardText: "The dashboard and alerts",
};

/** The settings, read. */
export type Settings = {
  readonly [K in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[K]>;
};

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly (keyof Settings)[];

/** The environment variable of a setting: `topK` is `MEMSTEM_TOP_K`. */
export function variableOf(name: keyof Settings): string {
  return `MEMSTEM_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
}

/** A setting's default as a caller would write it; undefined where it has none. */
export function defaultOf(name: keyof Settings): string | undefined {
  const standard = SETTINGS[name].safeParse(undefined).data;
  // The one setting whose default stands for something other than text.
  return standard === undefined ? undefined : String(standard ?? "off");
}
