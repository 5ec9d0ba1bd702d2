import { v7 as uuidV7 } from "uuid";
import type { CacheReading, ChatMessage, RequestId } from "../core/index.js";
import type { EngineName, EngineUsage } from "../engines/adapters/engine-adapter.js";
import { ENGINES } from "../engines/adapters/engines.js";
import { ANTHROPIC_LIMITS } from "../engines/adapters/provider-limits.js";
import { wholeOf } from "../engines/upstream/answer-body.js";
import { readCacheMetrics } from "../engines/upstream/cache-metrics.js";
import { errorsIn } from "../engines/upstream/engine-errors.js";
import { listIn, parsedJson, record, text } from "../engines/upstream/json-values.js";
import { type ModelLimit, ModelLimits } from "../engines/upstream/model-limits.js";
import { OWN_NAME, type Upstream, UpstreamError } from "../engines/upstream/upstream.js";

/** Tokens of a probe's prompt; providers cache nothing below 1,024. */
const PROBE_TOKENS = 1_500;
const MOST_BYTES = 8 * 1024 * 1024;
const LINE = "The museum opens at nine, and the garden behind it at ten.";
/** Tokens of a line with its number, about. */
const LINE_TOKENS = 16;

/** An engine's answer to one probe. */
export interface Probe {
  readonly usage: EngineUsage;
  /** Milliseconds to the whole answer of a few tokens. */
  readonly ms: number;
}

/** What an engine that answers shows of itself. */
export interface EngineFacts {
  readonly kind: "answers";
  readonly model: string;
  /** What its list of models says of who serves them, as `vllm`; empty: nothing. */
  readonly owner: string;
  readonly limit: ModelLimit | null;
  /** A new prompt; the same again; the same memories with another question. */
  readonly probes: readonly [fresh: Probe, again: Probe, changed: Probe];
  /** Null where it shows no metrics. */
  readonly reading: CacheReading | null;
  /** How far its clock is ahead of ours, in milliseconds; null where its answers have no date. */
  readonly clockAheadMs: number | null;
}

/** Why nothing more is known of an engine. `needs`: what its caller has to do. */
export interface EngineFailure {
  readonly kind: "fails";
  readonly says: string;
  readonly needs: string;
}

/**
 * Sends an engine three prompts of some 1,500 tokens, as memstem composes them for its family, and reads what it says of its cache.
 *
 * @param wanted the model; null: the only one that it lists
 */
export async function probeEngine(
  upstream: Upstream,
  family: EngineName,
  wanted: string | null,
): Promise<EngineFacts | EngineFailure> {
  try {
    const list = await get(upstream, "models");
    if (list.status === 401 || list.status === 403) return refusal(list.status, list.text);
    const json = parsedJson(list.text);
    const models = [...listIn(record(json)["data"] ?? json)].map(record);
    const names = models.map(({ id }) => text(id)).filter((id) => id !== "");
    const model = wanted ?? (names.length === 1 ? names[0] : undefined);
    if (model === undefined) {
      const listed = names.length === 0 ? "it lists no models" : `it lists ${names.length} models`;
      return { kind: "fails", says: `which model to try is not known: ${listed}`, needs: "name one: --model NAME" };
    }
    const limit = ModelLimits.read(json)?.of(model) ?? null;
    const prompt = promptFor(family, model, limit);
    const probes: Probe[] = [];
    let clockAheadMs: number | null = null;
    for (const question of ["Say yes.", "Say yes.", "Say no."]) {
      const sent = await ask(upstream, prompt(question));
      if (sent.status !== 200) return refusal(sent.status, sent.text);
      clockAheadMs = sent.clockAheadMs;
      probes.push({ usage: ENGINES[family].readUsage(parsedJson(sent.text)), ms: sent.ms });
    }
    const metrics = await get(upstream, "/metrics").catch(() => null);
    return {
      kind: "answers",
      model,
      owner: text(models.find(({ id }) => id === model)?.["owned_by"]),
      limit,
      probes: probes as unknown as EngineFacts["probes"],
      reading: metrics?.status === 200 ? readCacheMetrics(metrics.text) : null,
      clockAheadMs,
    };
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    return { kind: "fails", says: error.message, needs: "start the engine, or correct MEMSTEM_UPSTREAM_URL" };
  }
}

function refusal(status: number, body: string): EngineFailure {
  const [error] = [...errorsIn(body)];
  const says = error === undefined ? "" : `: ${plain(error.message)}`;
  const needs =
    status === 401 || status === 403
      ? "give its key as MEMSTEM_UPSTREAM_API_KEY"
      : status === 404
        ? "name a model that it serves (--model), or correct MEMSTEM_UPSTREAM_URL, which most often ends with /v1"
        : "make it answer a chat completion of this model";
  return { kind: "fails", says: `it answered with status ${status}${says}`, needs };
}

/** What somebody else wrote, as one line of a terminal. */
export function plain(line: string): string {
  return line.replace(/[\p{C}\s]+/gu, " ").slice(0, 200);
}

/** Gives the body of a question after always the same lines, which no prompt had before. */
function promptFor(family: EngineName, model: string, limit: ModelLimit | null) {
  const requestId = uuidV7() as RequestId;
  const most = Math.floor((limit?.promptTokens ?? limit?.contextTokens ?? Number.POSITIVE_INFINITY) / 2);
  const least = ((family === "anthropic" ? ANTHROPIC_LIMITS.minimumTokens(model) : null) ?? 0) * 1.25;
  const lines = Math.max(1, Math.floor(Math.min(most, Math.max(PROBE_TOKENS, least)) / LINE_TOKENS));
  const known = [requestId, ...Array.from({ length: lines }, (_, at) => `${at}. ${LINE}`)].join("\n");
  return (question: string) => {
    const messages: ChatMessage[] = [
      { role: "system", content: known },
      { role: "user", content: question },
    ];
    const of = { requestId, tenantKey: requestId, scopeKey: requestId, messages, reusableMessages: [0, 1], model };
    const { headers, fields, messages: marked } = ENGINES[family].emit(of);
    return { headers: Object.entries(headers), body: { ...fields, model, messages: marked } };
  };
}

interface Received {
  readonly status: number;
  readonly text: string;
  readonly ms: number;
  readonly clockAheadMs: number | null;
}

type Sent = ReturnType<ReturnType<typeof promptFor>>;

/** Newer models of OpenAI's know the length of an answer under another name. */
async function ask(upstream: Upstream, { headers, body }: Sent): Promise<Received> {
  const to = { method: "POST", path: "chat/completions", query: "" } as const;
  const all = [["content-type", "application/json"] as const, ...headers];
  const first = await received(upstream, { ...to, headers: all, body: JSON.stringify({ ...body, max_tokens: 16 }) });
  if (first.status !== 400 || !first.text.includes("max_completion_tokens")) return first;
  const again = { ...to, headers: all, body: JSON.stringify({ ...body, max_completion_tokens: 16 }) };
  return await received(upstream, again);
}

function get(upstream: Upstream, path: string): Promise<Received> {
  return received(upstream, { method: "GET", path, query: "", headers: [OWN_NAME], body: null });
}

async function received(upstream: Upstream, call: Parameters<Upstream["send"]>[0]): Promise<Received> {
  const began = performance.now();
  const { status, headers, body } = await upstream.send(call, new AbortController().signal);
  const whole = await wholeOf(body, upstream.name, MOST_BYTES);
  const date = Date.parse(headers.find(([name]) => name === "date")?.[1] ?? "");
  return {
    status,
    text: whole.toString("utf8"),
    ms: performance.now() - began,
    clockAheadMs: Number.isNaN(date) ? null : date - Date.now(),
  };
}
