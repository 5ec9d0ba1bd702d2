import { v7 as uuidV7 } from "uuid";
import type { EngineUsage } from "../apis/api/usage.js";
import { priceOf } from "../core/cost/prices.js";
import type { ChatMessage, RequestId } from "../core/index.js";
import { type JsonObject, listIn, parsedJson, record, text } from "../core/text/json.js";
import type { EngineName } from "../engines/adapters/engine-adapter.js";
import { ENGINES } from "../engines/adapters/engines.js";
import { wholeOf } from "../engines/upstream/answer-body.js";
import { errorsIn } from "../engines/upstream/engine-errors.js";
import { familyOfMetrics, familyOfModels } from "../engines/upstream/engine-family.js";
import { type ModelLimit, ModelLimits } from "../engines/upstream/model-limits.js";
import { OWN_NAME, type Upstream } from "../engines/upstream/upstream.js";
import { engineFamilyFor } from "../service/base/memprefix-parts.js";
import type { Settings } from "./setting-list.js";
import { engineOf, hasUnknownFamily } from "./settings.js";

/** The engine answered with an error. */
export class EngineRefusal extends Error {
  constructor(
    message: string,
    readonly advice: string,
    readonly status: number | null = null,
  ) {
    super(message);
  }
}

/** Long enough to compare times. */
const LONG_TOKENS = 1_500;
const MOST_BYTES = 8 * 1024 * 1024;
const LINE = "The museum opens at nine, and the garden behind it at ten.";
/** Approximate tokens of a line with its number. */
const LINE_TOKENS = 16;

export interface Probe {
  readonly usage: EngineUsage;
  /** To the end of an answer of a few tokens. */
  readonly ms: number;
}

/** A prompt whose beginning no earlier prompt had. */
export interface ProbePrompt {
  readonly messages: readonly ChatMessage[];
  /** Sends it as memprefix sends a tenant's. Rejects with {@link EngineRefusal}. @param more fields of the client's own */
  send(tenantKey: string, more?: JsonObject): Promise<Probe>;
}

/** An engine that can be sent probes. */
export interface ProbedEngine {
  readonly model: string;
  readonly family: EngineName;
  /** Prompts of about so many tokens (at least the provider's minimum) with the same beginning, each with another question. */
  newPrompts(tokens?: number): (question: string) => ProbePrompt;
}

/** The family of a model's engine, by the settings or by what its list of models says. */
type FamilyOf = (model: string, models: unknown) => EngineName | Promise<EngineName>;

/** An engine's family: the configured one, the host's provider, or what the engine says of itself. */
export function familyBy(settings: Settings, upstream: Upstream): FamilyOf {
  if (!hasUnknownFamily(settings)) return (model) => engineFamilyFor(engineOf(settings), model);
  return async (model, models) => {
    const metrics = async () => (await read(upstream, "/metrics").catch(() => null))?.text ?? "";
    const name = familyOfModels(models) ?? familyOfMetrics(await metrics());
    return engineFamilyFor(engineOf(settings, { name }), model);
  };
}

/**
 * Finds out which model to probe. Rejects with {@link EngineRefusal}.
 *
 * @param wanted the model; null: the only one listed
 */
export async function openProbes(upstream: Upstream, familyOf: FamilyOf, wanted: string | null): Promise<ProbedEngine> {
  const list = await read(upstream, "models");
  if (list.status === 401 || list.status === 403) throw refusal(list);
  const json = parsedJson(list.text);
  const models = [...listIn(record(json)["data"] ?? json)].map(record);
  const names = models.map(({ id }) => text(id)).filter((id) => id !== "");
  const model = wanted ?? (names.length === 1 ? names[0] : undefined);
  if (model === undefined) {
    const listed = names.length === 0 ? "it lists no models" : `it lists ${names.length} models`;
    throw new EngineRefusal(`which model to try is not known: ${listed}`, "name one: --model NAME");
  }
  const family = await familyOf(model, json);
  const { minimumTokens = 0 } = priceOf({ host: new URL(upstream.name).hostname, family }, model) ?? {};
  const limit = ModelLimits.read(json)?.of(model) ?? null;
  return {
    model,
    family,
    newPrompts(tokens = LONG_TOKENS) {
      const requestId = uuidV7() as RequestId;
      const lines = linesWithin(limit, Math.max(tokens, 1.25 * (minimumTokens ?? 0)));
      const known = [requestId, ...Array.from({ length: lines }, (_, at) => `${at}. ${LINE}`)].join("\n");
      return (question) => {
        const messages: ChatMessage[] = [
          { role: "system", content: known },
          { role: "user", content: question },
        ];
        const send: ProbePrompt["send"] = async (tenantKey, more = {}) => {
          const of = { requestId, tenantKey, scopeKey: tenantKey, messages, reusableMessages: [0, 1] };
          const { headers, fields, messages: marked } = ENGINES[family].emit(of);
          const body = { ...fields, model, messages: marked, ...more };
          const sent = await ask(upstream, { headers: Object.entries(headers), body });
          return { usage: ENGINES[family].readUsage(parsedJson(sent.text)), ms: sent.ms };
        };
        return { messages, send };
      };
    },
  };
}

function linesWithin(limit: ModelLimit | null, tokens: number): number {
  const most = Math.floor((limit?.promptTokens ?? limit?.contextTokens ?? Number.POSITIVE_INFINITY) / 2);
  return Math.max(1, Math.floor(Math.min(most, tokens) / LINE_TOKENS));
}

function refusal({ status, text: body }: Received): EngineRefusal {
  const [error] = [...errorsIn(body)];
  const says = error === undefined ? "" : `: ${plain(error.message)}`;
  const advice =
    status === 401 || status === 403
      ? "give its key as MEMPREFIX_UPSTREAM_API_KEY"
      : status === 404
        ? "name a model that it serves (--model), or correct MEMPREFIX_UPSTREAM_URL, which most often ends with /v1"
        : "make it answer a chat completion of this model";
  return new EngineRefusal(`it answered with status ${status}${says}`, advice, status);
}

/** Untrusted text, as one line of a terminal. */
export function plain(line: string): string {
  return line.replace(/[\p{C}\s]+/gu, " ").slice(0, 200);
}

interface Received {
  readonly status: number;
  readonly text: string;
  readonly ms: number;
}

interface Sent {
  readonly headers: readonly (readonly [string, string])[];
  readonly body: JsonObject;
}

/**
 * Requests a chat completion of one token. OpenAI's newer models have another name for that limit, and reject so short an answer.
 * Rejects with {@link EngineRefusal}.
 */
export async function ask(upstream: Upstream, { headers, body }: Sent): Promise<Received> {
  const send = (limit: JsonObject) =>
    received(upstream, {
      method: "POST",
      path: "chat/completions",
      query: "",
      headers: [["content-type", "application/json"], ...headers],
      body: JSON.stringify({ ...body, ...limit }),
    });
  const first = await send({ max_tokens: 1 });
  const isNewer = first.status === 400 && first.text.includes("max_completion_tokens");
  const answer = isNewer ? await send({ max_completion_tokens: 16 }) : first;
  if (answer.status !== 200) throw refusal(answer);
  return answer;
}

function read(upstream: Upstream, path: string): Promise<Received> {
  return received(upstream, { method: "GET", path, query: "", headers: [OWN_NAME], body: null });
}

export async function received(upstream: Upstream, call: Parameters<Upstream["send"]>[0]): Promise<Received> {
  const began = performance.now();
  const { status, body } = await upstream.send(call, new AbortController().signal);
  const text = await wholeOf(body, upstream.name, MOST_BYTES);
  return { status, text, ms: performance.now() - began };
}
