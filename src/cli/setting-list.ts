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
  MAX_MEMORY_CHARACTERS,
  POLICY_NAMES,
  RETENTION_NAMES,
  TOOL_MEMORIES,
  timeZoneProblem,
} from "../core/index.js";
import { MARK_LIFETIMES } from "../engines/adapters/anthropic.js";
import { ENGINE_NAMES } from "../engines/adapters/engine-adapter.js";
import { DEFAULT_TOP_K } from "../service/compose/compose-request.js";
import { mem0Name, workers } from "../service/fields/fields.js";
import { DEFAULT_USAGE_BOUNDS } from "../store/api/usage-log.js";
import { headerName, identitySources, sessionRouter } from "./session-settings.js";
import { adaptiveDepth, engineModel, escapedMarkers, memoryFilters } from "./structured-settings.js";

/** One setting: its environment variable, what it means, how it is read. */
interface Setting<S extends z.ZodType> {
  readonly variable: string;
  readonly help: string;
  readonly schema: S;
  /** The default as a caller would write it, where its parsed value is not text. */
  readonly standard?: string | undefined;
}

function setting<S extends z.ZodType>(variable: string, help: string, schema: S, standard?: string): Setting<S> {
  return { variable, help, schema, standard };
}

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

/** Every setting there is; `memstem serve --help` lists them. */
export const SETTINGS = {
  host: setting(
    "MEMSTEM_HOST",
    "address to listen on; without API keys the loopback only (see memstem keys --help)",
    z.string().min(1).default("127.0.0.1"),
  ),
  port: setting("MEMSTEM_PORT", "port to listen on; 0 takes a free one", wholeNumber(0, 65_535).default(4600)),
  apiKey: setting(
    "MEMSTEM_API_KEY",
    "an API key of the tenant default, beside those of memstem keys; 32 to 256 characters; default: none",
    z
      .string()
      .regex(/^[!-~]{32,256}$/, "must be 32 to 256 printable ASCII characters without spaces")
      .optional(),
  ),
  dataDir: setting("MEMSTEM_DATA_DIR", "directory of memstem's files", z.string().min(1).default("memstem-data")),
  databaseUrl: setting(
    "MEMSTEM_DATABASE_URL",
    "PostgreSQL database that many instances share, postgres://user:password@host:port/name; default: a file in MEMSTEM_DATA_DIR",
    z.url({ protocol: /^postgres(?:ql)?$/, error: "must be a postgres:// address" }).optional(),
  ),
  source: setting(
    "MEMSTEM_SOURCE",
    "embedded, hosted, rest or none; default: rest with a URL, hosted with only a key, else embedded where its packages are installed, else none",
    z.enum(["embedded", "hosted", "rest", "none"]).optional(),
  ),
  mem0Url: setting("MEMSTEM_MEM0_URL", "address of Mem0's REST server, or of another Mem0 platform", url.optional()),
  mem0ApiKey: setting("MEMSTEM_MEM0_API_KEY", "Mem0's API key", z.string().min(1).optional()),
  mem0Threshold: setting(
    "MEMSTEM_MEM0_THRESHOLD",
    "minimum similarity of memories to the query, 0 to 1; default: Mem0's own",
    z.coerce.number("must be a number").min(0).max(1).optional(),
  ),
  mem0AppId: setting(
    "MEMSTEM_MEM0_APP_ID",
    "application of Mem0's whose memories are searched where a request names none; default: any",
    mem0Name.optional(),
  ),
  mem0Filters: setting(
    "MEMSTEM_MEM0_FILTERS",
    'conditions of every search in Mem0\'s form, as JSON, such as {"topic": "food"}; default: none',
    memoryFilters.optional(),
  ),
  mem0ShowExpired: setting(
    "MEMSTEM_MEM0_SHOW_EXPIRED",
    "on or off: by default, give memories whose expiration date is past",
    z.enum(["on", "off"]).default("off"),
  ),
  mem0Check: setting(
    "MEMSTEM_MEM0_CHECK",
    "on or off: beside each search, ask Mem0 what became of memories that the conversation was given, at most 16",
    z.enum(["on", "off"]).default("on"),
  ),
  policy: setting(
    "MEMSTEM_POLICY",
    `default ordering policy: ${POLICY_NAMES.join(", ")}`,
    z.enum(POLICY_NAMES).default(DEFAULT_POLICY),
  ),
  topK: setting(
    "MEMSTEM_TOP_K",
    "default number of memories to search for",
    wholeNumber(1, 1_000).default(DEFAULT_TOP_K),
  ),
  retention: setting(
    "MEMSTEM_RETENTION",
    `default retention, what a conversation keeps of injected memories: ${RETENTION_NAMES.join(", ")}`,
    z.enum(RETENTION_NAMES).default(DEFAULT_RETENTION),
  ),
  engineModel: setting(
    "MEMSTEM_COST",
    `cost model of the engine: ${ENGINE_MODEL_NAMES.join(", ")}, or an object as JSON; default: by the engine's family`,
    engineModel.optional(),
  ),
  engineFamily: setting(
    "MEMSTEM_ENGINE_FAMILY",
    `default engine family of prompts: ${ENGINE_NAMES.join(", ")}`,
    z.enum(ENGINE_NAMES).default("generic"),
  ),
  blockSeparator: setting(
    "MEMSTEM_BLOCK_SEPARATOR",
    "separator between memories for vllm and sglang with LMCache, equal to its blend_special_str; default: none",
    z.string().max(100).regex(/\S/, "must contain something other than white space").optional(),
  ),
  cacheMarkTtl: setting(
    "MEMSTEM_CACHE_MARK_TTL",
    "lifetime of memstem's cache marks for anthropic, 5m or 1h, where the client's own allow it; an hour costs more to write",
    z.enum(MARK_LIFETIMES).default("5m"),
  ),
  cacheTtlSeconds: setting(
    "MEMSTEM_CACHE_TTL_SECONDS",
    "seconds that the engine's cache keeps a prefix after its last use; default: no limit",
    wholeNumber(1, 31_536_000).optional(),
  ),
  cacheTokens: setting(
    "MEMSTEM_CACHE_TOKENS",
    "tokens that the engine's cache holds, of all users; default: learned from its reports",
    wholeNumber(1, 1_000_000_000_000).optional(),
  ),
  cacheSlots: setting(
    "MEMSTEM_CACHE_SLOTS",
    "prompts that the engine's cache keeps, the last of each slot, as in llama.cpp; default: the slots of the embedded engine, else no limit",
    wholeNumber(1, 256).optional(),
  ),
  workers: setting(
    "MEMSTEM_WORKERS",
    "names of engine replicas that a gateway routes prompts to by a header, separated by commas; see docs/ordering.md; default: none",
    z
      .string()
      .transform((names) => names.split(",").map((name) => name.trim()))
      .pipe(workers)
      .optional(),
  ),
  scheduleMs: setting(
    "MEMSTEM_SCHEDULE_MS",
    "longest wait of a single prompt to be ordered with others that come meanwhile, in ms; 0: none waits; see docs/ordering.md",
    wholeNumber(0, 1_000).default(0),
  ),
  searchTimeoutMs: setting(
    "MEMSTEM_SEARCH_TIMEOUT_MS",
    "time-out of a memory search, in ms, after which the prompt is composed without it",
    wholeNumber(1, 600_000).default(2_000),
  ),
  composeTimeoutMs: setting(
    "MEMSTEM_COMPOSE_TIMEOUT_MS",
    "time-out for composing a chat, in ms, after which it is forwarded unmodified; default: MEMSTEM_SEARCH_TIMEOUT_MS + 3000",
    wholeNumber(1, 3_600_000).optional(),
  ),
  writeTimeoutMs: setting(
    "MEMSTEM_WRITE_TIMEOUT_MS",
    "time-out for adding or deleting memories, in ms",
    wholeNumber(1, 3_600_000).default(60_000),
  ),
  maxMemoryCharacters: setting(
    "MEMSTEM_MAX_MEMORY_CHARACTERS",
    "maximum characters of one memory in a prompt; a longer one is truncated, with a mark",
    wholeNumber(100, 10_000_000).default(MAX_MEMORY_CHARACTERS),
  ),
  history: setting(
    "MEMSTEM_HISTORY",
    "prompts of histories that the client cut: exact (its own messages only), extended (what it cut too, within the history ratio) or auto (the same where the engine's cost says that it pays)",
    z.enum(DEFAULT_HISTORY_NAMES).default(DEFAULT_HISTORY),
  ),
  toolMemories: setting(
    "MEMSTEM_TOOL_MEMORIES",
    "memories behind a tool's result: own_message, in_result, or auto (as the engine family and the model take them); see docs/engines.md",
    z.enum(["auto", ...TOOL_MEMORIES]).default("auto"),
  ),
  maxPromptTokens: setting(
    "MEMSTEM_MAX_PROMPT_TOKENS",
    "most tokens of a prompt, without the answer's; default: what the engine behind /v1 says that it takes, if it does",
    wholeNumber(1, 100_000_000).optional(),
  ),
  blockTemplate: setting(
    "MEMSTEM_BLOCK_TEMPLATE",
    "what a prompt gives of a memory, as in [{date}: ]{memory}; see docs/blocks.md",
    z.string().superRefine(checkedBy(blockTemplateProblem)).default(DEFAULT_BLOCK_TEMPLATE),
  ),
  timeZone: setting(
    "MEMSTEM_TIME_ZONE",
    "IANA time zone of the times in MEMSTEM_BLOCK_TEMPLATE",
    z.string().superRefine(checkedBy(timeZoneProblem)).default(DEFAULT_TIME_ZONE),
  ),
  dedupe: setting(
    "MEMSTEM_DEDUPE",
    "texts that a prompt gives once: contained (those that another memory or the question says too, as whole sentences) or exact (equal ones)",
    z.enum(DEDUPE_NAMES).default(DEFAULT_DEDUPE),
  ),
  escape: setting(
    "MEMSTEM_ESCAPE",
    "additional texts to escape in memories, such as unusual special tokens, as a JSON array; default: none",
    escapedMarkers.optional(),
  ),
  maxBodyBytes: setting(
    "MEMSTEM_MAX_BODY_BYTES",
    "maximum bytes of a request body",
    wholeNumber(1_024, 1_073_741_824).default(4 * 1024 * 1024),
  ),
  maxBatchBytes: setting(
    "MEMSTEM_MAX_BATCH_BYTES",
    "maximum bytes of a batch in one JSON document; a batch of JSON lines has no limit",
    wholeNumber(1_024, 1_073_741_824).default(128 * 1024 * 1024),
  ),
  bodyTimeoutMs: setting(
    "MEMSTEM_BODY_TIMEOUT_MS",
    "idle time-out of a request body, in ms; also the grace period of MEMSTEM_BODY_BYTES_PER_SECOND",
    wholeNumber(1, 3_600_000).default(15_000),
  ),
  bodyBytesPerSecond: setting(
    "MEMSTEM_BODY_BYTES_PER_SECOND",
    "minimum average rate of a request body, in bytes per second",
    wholeNumber(1, 1_073_741_824).default(4_096),
  ),
  answerTimeoutMs: setting(
    "MEMSTEM_ANSWER_TIMEOUT_MS",
    "idle time-out of a client that does not read its answer, in ms",
    wholeNumber(1, 3_600_000).default(120_000),
  ),
  ratePerSecond: setting(
    "MEMSTEM_RATE_PER_SECOND",
    "maximum average requests per second of one API key; default: no limit",
    wholeNumber(1, 1_000_000).optional(),
  ),
  rateBurst: setting(
    "MEMSTEM_RATE_BURST",
    "maximum burst of requests of one API key; default: two seconds' worth",
    wholeNumber(1, 10_000_000).optional(),
  ),
  maxConcurrent: setting(
    "MEMSTEM_MAX_CONCURRENT",
    "maximum concurrent requests of one API key, streams included; default: no limit",
    wholeNumber(1, 1_000_000).optional(),
  ),
  maxWaitingPerUser: setting(
    "MEMSTEM_MAX_WAITING_PER_USER",
    "maximum concurrent and queued requests of one user; more are rejected",
    wholeNumber(1, 1_000_000).default(256),
  ),
  maxPending: setting(
    "MEMSTEM_MAX_PENDING",
    "maximum concurrent requests of the service; more are rejected",
    wholeNumber(1, 1_000_000).default(1_024),
  ),
  maxLagMs: setting(
    "MEMSTEM_MAX_LAG_MS",
    "maximum admission delay under overload, in ms",
    wholeNumber(1, 600_000).default(150),
  ),
  webhookToken: setting(
    "MEMSTEM_WEBHOOK_TOKEN",
    "bearer token for POST /webhooks/mem0, 16 characters or more; default: no such route",
    z.string().min(16, "must have at least 16 characters").optional(),
  ),
  corsOrigins: setting(
    "MEMSTEM_CORS_ORIGINS",
    "CORS origins, as https://app.example.org, separated by commas; default: none",
    origins.pipe(z.array(origin)).optional(),
  ),
  usagePrompts: setting(
    "MEMSTEM_USAGE_PROMPTS",
    "prompts whose figures are kept for the dashboard and GET /usage, for a month at most; 0: none are recorded; see docs/dashboard.md",
    wholeNumber(0, 100_000_000).default(DEFAULT_USAGE_BOUNDS.prompts),
  ),
  dashboardText: setting(
    "MEMSTEM_DASHBOARD_TEXT",
    "on or off: show the text of memories and messages in the dashboard and in GET /usage/request",
    z.enum(["on", "off"]).default("off"),
  ),
  alerts: setting(
    "MEMSTEM_ALERTS",
    "JSON file of alert rules, such as a cached share that falls by a third within an hour; see docs/dashboard.md; default: none",
    z.string().min(1).optional(),
  ),
  keepDays: setting(
    "MEMSTEM_KEEP_DAYS",
    "days after which unused conversations, prompts and memory texts are deleted; default: no limit",
    wholeNumber(1, 36_500).optional(),
  ),
  shutdownMs: setting(
    "MEMSTEM_SHUTDOWN_MS",
    "time-out of running requests, streams included, after SIGTERM, in ms",
    wholeNumber(0, 3_600_000).default(10_000),
  ),
  maxWorkingMegabytes: setting(
    "MEMSTEM_MAX_WORKING_MB",
    "maximum megabytes of working state in memory, estimated; the process needs about five times as much",
    wholeNumber(1, 1_048_576).default(128),
  ),
  maxIndexNodes: setting(
    "MEMSTEM_MAX_INDEX_NODES",
    "maximum nodes of one user's context index; the least recently used paths are evicted",
    wholeNumber(10, 10_000_000).default(20_000),
  ),
  engine: setting(
    "MEMSTEM_ENGINE",
    "none or embedded: llama.cpp in this process, behind /v1; needs the package node-llama-cpp",
    z.enum(["none", "embedded"]).default("none"),
  ),
  model: setting("MEMSTEM_MODEL", "GGUF file of the embedded engine's model", z.string().min(1).optional()),
  engineSlots: setting(
    "MEMSTEM_ENGINE_SLOTS",
    "slots of the embedded engine: its concurrent requests, and the prompts that it keeps cached",
    wholeNumber(1, 256).default(4),
  ),
  contextTokens: setting(
    "MEMSTEM_CONTEXT_TOKENS",
    "maximum tokens of a prompt with its answer, per slot; default: the model's, at most 8192",
    wholeNumber(16, 16_777_216).optional(),
  ),
  upstreamUrl: setting(
    "MEMSTEM_UPSTREAM_URL",
    "base URL of the OpenAI-compatible API behind /v1, as in http://127.0.0.1:8000/v1; default: none",
    url.optional(),
  ),
  upstreamApi: setting(
    "MEMSTEM_UPSTREAM_API",
    "the upstream's API: openai, or anthropic for Anthropic's own, to which chats are converted",
    z.enum(["openai", "anthropic"]).default("openai"),
  ),
  upstreamApiKey: setting(
    "MEMSTEM_UPSTREAM_API_KEY",
    "the upstream's API key; default: the client's key is forwarded",
    z.string().min(1).optional(),
  ),
  upstreamTimeoutMs: setting(
    "MEMSTEM_UPSTREAM_TIMEOUT_MS",
    "time-out for the first byte of the upstream's answer, in ms",
    wholeNumber(1, 3_600_000).default(600_000),
  ),
  upstreamIdleMs: setting(
    "MEMSTEM_UPSTREAM_IDLE_MS",
    "idle time-out between bytes of the upstream's answer, in ms; default: MEMSTEM_UPSTREAM_TIMEOUT_MS",
    wholeNumber(1, 3_600_000).optional(),
  ),
  userHeader: setting(
    "MEMSTEM_USER_HEADER",
    "header that names the user of a request to /v1 where X-Memstem-User does not; default: none",
    headerName.optional(),
  ),
  conversationHeader: setting(
    "MEMSTEM_CONVERSATION_HEADER",
    "header that names its conversation where X-Memstem-Conversation does not, such as x-litellm-session-id; default: none",
    headerName.optional(),
  ),
  identity: setting(
    "MEMSTEM_IDENTITY",
    "further places that name the user, agent or conversation of a request to /v1, or tell a client's side calls, first first, as in user=header:x-user,conversation=body:metadata.session_id; see docs/identity.md; default: none",
    identitySources.optional(),
  ),
  router: setting(
    "MEMSTEM_ROUTER",
    "router in front of the upstream's replicas, which gets a key per conversation: sglang, dynamo, vllm-router, litellm, bifrost, xai, openai, or header:NAME; default: none",
    sessionRouter.optional(),
  ),
  cacheDiagnostics: setting(
    "MEMSTEM_CACHE_DIAGNOSTICS",
    "on or off: ask the provider, OpenAI (/v1/responses, openai-breakpoints) or Anthropic's own API (/v1/messages), to compare each request of a conversation with the one before, for explain",
    z.enum(["on", "off"]).default("off"),
  ),
  writeBack: setting(
    "MEMSTEM_WRITE_BACK",
    "on or off: by default, store the questions and answers of chats and responses as memories",
    z.enum(["on", "off"]).default("off"),
  ),
  warmUp: setting(
    "MEMSTEM_WARM_UP",
    "on or off: during the memory search, let the engine compute the prompt's prefix if it is long and uncached",
    z.enum(["on", "off"]).default("off"),
  ),
  adaptiveDepth: setting(
    "MEMSTEM_ADAPTIVE_DEPTH",
    "off, on, or an object as JSON: send few memories first, and more while the engine is unsure of the first token of its answer",
    adaptiveDepth.default(null),
    "off",
  ),
  logLevel: setting(
    "MEMSTEM_LOG_LEVEL",
    "silent, error, warn, info or debug; logs go to standard error and hold no memory text",
    z.enum(["silent", "error", "warn", "info", "debug"]).default("info"),
  ),
} as const;

/** The settings, read. */
export type Settings = {
  readonly [K in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[K]["schema"]>;
};
