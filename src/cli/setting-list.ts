import { z } from "zod";
import {
  DEFAULT_DEPTH,
  DEFAULT_POLICY,
  DEFAULT_RETENTION,
  type DepthSettings,
  ENGINE_MODEL_NAMES,
  ENGINE_MODELS,
  type EngineModel,
  POLICY_NAMES,
  RETENTION_NAMES,
} from "../core/index.js";
import { parsedJson } from "../core/text/json.js";
import { ENGINE_NAMES } from "../engines/adapters/engine-adapter.js";
import { SESSION_ROUTERS, type SessionRouter } from "../engines/adapters/session-routers.js";
import { kvEventSources } from "../engines/kv-events/kv-events.js";
import { readerOf, snakeCased } from "../http/contracts/wire-form.js";
import type { IdentitySources } from "../service/chat/chat-request.js";
import { DEFAULT_TOP_K } from "../service/compose/compose-request.js";
import { searchOptions } from "../service/fields/compose-options.js";
import * as field from "../service/fields/fields.js";
import { workers } from "../service/fields/fields.js";

const url = z.url({ protocol: /^https?$/, error: "must be an http or https address" });
const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));

const text = z.string().min(1);
const onOrOff = z.enum(["on", "off"]);

/** What is wrong with a setting's text. */
class Wrong {
  readonly messages: readonly string[];
  constructor(...messages: readonly string[]) {
    this.messages = messages;
  }
}

/** A setting that a function reads. */
const readBy = <T>(read: (text: string) => T | Wrong) =>
  z.string().transform((text, context): T => {
    const value = read(text);
    if (!(value instanceof Wrong)) return value;
    for (const message of value.messages) context.addIssue({ code: "custom", message });
    return z.NEVER;
  });

/*
 * Settings as JSON, or the name of a preset. A wrong field becomes an issue with its path.
 */

const atLeastZero = z.number().min(0, "must not be negative");
const model = z.strictObject({
  cost: z.discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("time"),
      fixedMs: atLeastZero,
      perTokenMs: atLeastZero,
      perPairMs: atLeastZero,
    }),
    z.strictObject({ kind: z.literal("money"), uncached: atLeastZero, written: atLeastZero, cached: atLeastZero }),
  ]),
  blockTokens: z.int().min(1).default(1),
  minimumPrefixTokens: z.int().min(0).default(0),
});

const depth = z.strictObject({
  firstBlocks: field.firstBlocks.default(DEFAULT_DEPTH.firstBlocks),
  growth: field.growth.default(DEFAULT_DEPTH.growth),
  entropyNats: field.entropyNats.default(DEFAULT_DEPTH.entropyNats),
  maxProbes: field.maxProbes.default(DEFAULT_DEPTH.maxProbes),
  timeLimitMs: field.timeLimitMs.default(DEFAULT_DEPTH.timeLimitMs),
});

/** Cost of prompts: the name of an engine family, or an {@link EngineModel} as JSON. */
const engineModel = readBy((text): EngineModel | Wrong => {
  const name = ENGINE_MODEL_NAMES.find((known) => known === text);
  if (name !== undefined) return ENGINE_MODELS[name];
  return readObject(text, model, `must be one of ${ENGINE_MODEL_NAMES.join(", ")}, or a JSON object`);
});

/** `off` (null), `on`, or the {@link DepthSettings} that differ from the defaults, as JSON. */
const adaptiveDepth = readBy((text): DepthSettings | null | Wrong => {
  if (text === "off") return null;
  if (text === "on") return DEFAULT_DEPTH;
  return readObject(text, depth, "must be off, on, or a JSON object");
});

/** Names separated by commas, in lower case. */
const untrustedOrigins = readBy((text): ReadonlySet<string> | Wrong => {
  const read = z.array(field.memoryOrigin).safeParse(text.split(","));
  return read.success ? new Set(read.data) : new Wrong("must be names of 1 to 100 characters, separated by commas");
});

/** Options of a search in HTTP's form, as JSON. */
const mem0Search = readBy((text) =>
  readObject(text, snakeCased(searchOptions), 'must be a JSON object, such as {"rerank": true}'),
).transform(readerOf(searchOptions));

function readObject<S extends z.ZodType>(text: string, schema: S, expected: string): z.output<S> | Wrong {
  if (!text.trimStart().startsWith("{")) return new Wrong(expected);
  const given = parsedJson(text);
  if (given === undefined) return new Wrong("is not valid JSON");
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  return new Wrong(
    ...read.error.issues.map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`)),
  );
}

/*
 * Settings of identity: which places of a request name the user and the conversation, and where the conversation's key goes.
 */

/** A header's name (RFC 9110 §5.1) in lower case, none of memprefix's own. */
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be the name of a header")
  .toLowerCase()
  .refine((name) => !name.startsWith("x-memprefix-"), "must not be one of memprefix's own");

export const NOTHING_LISTED: IdentitySources = { user: [], agent: [], conversation: [], sideCall: [] };

const NAMED: Readonly<Record<string, keyof IdentitySources>> = {
  user: "user",
  agent: "agent",
  conversation: "conversation",
  side_call: "sideCall",
};

const ENTRY = /^(\w+)=(header|body):(.+)$/;
const FIELD = /^[^\s.,=]{1,100}(?:\.[^\s.,=]{1,100}){0,9}$/;

/** Places in order: `user=header:NAME`, `conversation=body:PATH`, separated by commas. */
const identitySources = readBy((text): IdentitySources | Wrong => {
  const sources: { [K in keyof IdentitySources]: IdentitySources[K][number][] } = {
    user: [],
    agent: [],
    conversation: [],
    sideCall: [],
  };
  for (const entry of text.split(",").map((part) => part.trim())) {
    const [, what = "", from, place = ""] = ENTRY.exec(entry) ?? [];
    const named = NAMED[what];
    const header = headerName.safeParse(place);
    if (named !== undefined && from === "header" && header.success) {
      sources[named].push({ from, name: header.data });
    } else if (named !== undefined && from === "body" && FIELD.test(place)) {
      sources[named].push({ from, path: place.split(".") });
    } else {
      const form =
        "must be user=, agent=, conversation= or side_call=, then header:NAME or body:PATH, separated by commas";
      return new Wrong(`${form}: ${JSON.stringify(entry)} is not`);
    }
  }
  return sources;
});

/** Replicas; memprefix names one to a gateway with each prompt. */
export interface RoutedWorkers {
  readonly workers: readonly string[];
}

/** A known router, any that reads a header (`header:NAME`), or a gateway that takes the worker's name (`workers:NAME,NAME`). */
const router = readBy((text): SessionRouter | RoutedWorkers | Wrong => {
  const [, names] = /^workers:(.*)$/.exec(text) ?? [];
  if (names !== undefined) {
    const read = workers.safeParse(names.split(",").map((name) => name.trim()));
    return read.success ? { workers: read.data } : new Wrong(read.error.issues[0]?.message ?? "");
  }
  if (Object.hasOwn(SESSION_ROUTERS, text)) return SESSION_ROUTERS[text as keyof typeof SESSION_ROUTERS];
  const [, name] = /^header:(.*)$/.exec(text) ?? [];
  const header = headerName.safeParse(name);
  if (header.success) return { header: header.data };
  return new Wrong(`must be ${Object.keys(SESSION_ROUTERS).join(", ")}, header:NAME or workers:NAME,NAME`);
});

/** `120000` or `120000 tokens`, or `4 slots`. */
const cacheSize = readBy((text): { readonly tokens: number } | { readonly slots: number } | Wrong => {
  const [, number, unit] = /^([1-9]\d{0,11})(?: (tokens|slots))?$/.exec(text.trim()) ?? [];
  const count = Number(number);
  if (number !== undefined && unit !== "slots") return { tokens: count };
  if (number !== undefined && count <= MAX_SLOTS) return { slots: count };
  return new Wrong(`must be as 120000 tokens, or 4 slots, at most ${MAX_SLOTS}`);
});

const MAX_SLOTS = 256;

/**
 * Every setting, one row each: its name, how its text is read, its default and its meaning. The name gives the environment variable
 * ({@link variableOf}); `memprefix serve --help` and docs/settings.md are made from this table, in its order.
 */
export const SETTINGS = {
  host: text
    .default("127.0.0.1")
    .describe("address to listen on; without API keys the loopback only (see memprefix keys --help)"),
  port: wholeNumber(0, 65_535).default(4600).describe("port to listen on; 0 takes a free one"),
  dataDir: text.default("memprefix-data").describe("directory of memprefix's files"),
  databaseUrl: z
    .url({ protocol: /^postgres(?:ql)?$/, error: "must be a postgres:// address" })
    .optional()
    .describe(
      "PostgreSQL database that many instances share, postgres://user:password@host:port/name; default: a file in MEMPREFIX_DATA_DIR",
    ),
  logLevel: z
    .enum(["silent", "error", "warn", "info", "debug"])
    .default("info")
    .describe("silent, error, warn, info or debug; logs go to standard error"),
  apiKey: z
    .string()
    .regex(/^[!-~]{32,256}$/, "must be 32 to 256 printable ASCII characters without spaces")
    .optional()
    .describe(
      "an API key of the tenant default, in addition to those of memprefix keys; 32 to 256 characters; default: none",
    ),
  webhookToken: z
    .string()
    .min(16, "must have at least 16 characters")
    .optional()
    .describe("bearer token for POST /webhooks/mem0, 16 characters or more; default: no such route"),
  keepDays: wholeNumber(1, 36_500)
    .optional()
    .describe("days after which unused conversations, prompts and memory texts are deleted; default: unlimited"),
  dashboardText: onOrOff
    .default("off")
    .describe("on or off: show the text of memories and messages in the dashboard and in GET /usage/request"),
  source: z
    .enum(["embedded", "hosted", "rest", "none"])
    .optional()
    .describe(
      "embedded, hosted, rest or none; default: rest with a URL, hosted with only a key, else embedded if its packages are installed, else none",
    ),
  mem0Url: url.optional().describe("address of Mem0's REST server, or of another Mem0 platform"),
  mem0ApiKey: text.optional().describe("Mem0's API key"),
  mem0Search: mem0Search
    .optional()
    .describe(
      'defaults of each request\'s `search`, as JSON, such as {"filters": {"topic": "food"}, "rerank": true, "threshold": 0.2}; default: none',
    ),
  untrustedOrigins: untrustedOrigins
    .optional()
    .describe("origins of untrusted memories, such as tool,web; their texts are never repeated; default: none"),
  searchTimeoutMs: wholeNumber(1, 600_000)
    .default(2_000)
    .describe("timeout of a memory search in ms; then the prompt gets known memories instead"),
  topK: wholeNumber(1, 1_000).default(DEFAULT_TOP_K).describe("default number of memories to search for"),
  writeBack: onOrOff.default("off").describe("on or off: add each question and its answer to the memory source"),
  policy: z
    .enum(POLICY_NAMES)
    .default(DEFAULT_POLICY)
    .describe(`default ordering policy: ${POLICY_NAMES.join(", ")}`),
  retention: z
    .enum(RETENTION_NAMES)
    .default(DEFAULT_RETENTION)
    .describe(`what a conversation keeps of its memories, by default: ${RETENTION_NAMES.join(", ")}`),
  stableTools: onOrOff
    .default("on")
    .describe(
      "on: send a conversation's tools in the order and with the bytes of its first request; off: as the client sends them",
    ),
  stableInstructions: onOrOff
    .default("off")
    .describe(
      "on: a conversation keeps its first system text, and its newest message lists the changed lines (docs/proxy.md); off: as the client sends it",
    ),
  maxPromptTokens: wholeNumber(1, 100_000_000)
    .optional()
    .describe("maximum tokens of a prompt, without the answer; default: the limit that the engine reports, if any"),
  adaptiveDepth: adaptiveDepth
    .default(null)
    .describe(
      "off, on, or a JSON object: try few memories first, and more if the engine is uncertain of its first token",
    ),
  engineFamily: z
    .enum(ENGINE_NAMES)
    .optional()
    .describe(
      `engine family, unless a request names one: ${ENGINE_NAMES.join(", ")}; default: recognised by the upstream's host, models or /metrics, else generic`,
    ),
  engineCost: engineModel
    .optional()
    .describe(
      `cost model of the engine: ${ENGINE_MODEL_NAMES.join(", ")}, or a JSON object; default: the provider's prices for the model, else gpu`,
    ),
  cacheTtlSeconds: wholeNumber(1, 31_536_000)
    .optional()
    .describe("seconds that the engine caches a prefix after its last use; default: unlimited"),
  cacheSize: cacheSize
    .optional()
    .describe(
      "size of the engine's cache, such as 120000 tokens, or 4 slots of one prompt each; default: reported by the engine, or learned from usage",
    ),
  kvEvents: z
    .union([z.enum(["auto", "off"]), kvEventSources])
    .default("auto")
    .describe(
      "addresses of the engine's KV events, such as tcp://127.0.0.1:5557?replay=5558; auto: those that the engine names; or off",
    ),
  upstreamUrl: url.optional().describe("base URL of the engine's API, such as http://127.0.0.1:8000/v1; default: none"),
  upstreamApiKey: text.optional().describe("the upstream's API key; default: none, the client's key is forwarded"),
  identity: identitySources
    .optional()
    .describe(
      "headers and body fields that name the user, agent or conversation, such as user=header:x-user (docs/identity.md); default: none",
    ),
  defaultUser: field.userId
    .optional()
    .describe("user of chats that name none, if there are no API keys; default: none: such chats get no memories"),
  router: router
    .optional()
    .describe(
      "router that gets a key per conversation: sglang, dynamo, vllm-router, llm-d, litellm, bifrost, xai, openai or header:NAME; or workers:NAME,NAME, among which memprefix chooses; default: none",
    ),
  warmUp: onOrOff
    .default("off")
    .describe("on or off: have the engine compute a long uncached prefix during the memory search"),
} as const;

/** Headings of `--help` and docs/settings.md, by the first setting under each. */
export const SETTING_TITLES: Readonly<Partial<Record<keyof Settings, string>>> = {
  host: "Service",
  source: "Memories",
  policy: "Prompts",
  engineFamily: "Engine",
  upstreamUrl: "Proxy",
};

export type Settings = {
  readonly [K in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[K]>;
};

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly (keyof Settings)[];

/** The environment variable of a setting: `topK` is `MEMPREFIX_TOP_K`. */
export function variableOf(name: keyof Settings): string {
  return `MEMPREFIX_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
}

/** Variables of memprefix's clients, which are no settings: whom they call, and for whom. */
export const CLIENT_VARIABLES = ["MEMPREFIX_URL", "MEMPREFIX_USER"] as const;

/** A setting's default as a user would write it; undefined for none. */
export function defaultOf(name: keyof Settings): string | undefined {
  const standard = SETTINGS[name].safeParse(undefined).data;
  // The one setting whose default is not text.
  return standard === undefined ? undefined : String(standard ?? "off");
}
