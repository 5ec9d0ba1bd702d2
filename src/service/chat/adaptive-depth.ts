import {
  type Depth,
  type DepthChoice,
  type DepthOutcome,
  type DepthProbe,
  type DepthSettings,
  LruMap,
  mostEntropy,
  probeDepths,
  type Warning,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { wholeOf } from "../../engines/upstream/answer-body.js";
import { firstTokenBody, fixesStart, isMark, readFirstToken } from "../../engines/upstream/first-token.js";
import { forAnotherRequest, withAdded } from "../../engines/upstream/upstream.js";
import { linkedSignal } from "../base/linked-signal.js";
import { inClientSpan } from "../base/spans.js";
import type { ChosenDepth, DraftAt, DraftedPrompt } from "../compose/prompt-planner.js";
import { bodyOf, type ChatParts, type ClientRequest, withTools } from "./chat-request.js";
import { modelName } from "./engine-limits.js";

/** Largest `top_logprobs`: OpenAI's limit, and vLLM's default. */
const MOST_LISTED = 20;
/** `top_logprobs` of engines with a lower limit. */
const FEW_LISTED = 5;
/** Milliseconds without probes after an engine returned no log probabilities for a model. */
const RETRY_AFTER_MS = 10 * 60_000;
/** Consecutive failed probes that count as no support. */
const STRIKES = 3;
/** Models remembered. Clients choose the names, so the least recently used is dropped. */
const MAX_MODELS = 256;

interface Known {
  readonly top: number;
  readonly strikes: number;
  /** A monotonic time; null: supported, as far as known. */
  readonly offUntil: number | null;
}

const UNKNOWN: Known = { top: MOST_LISTED, strikes: 0, offUntil: null };

/** The models for which an engine returns log probabilities, as one tenant's requests have shown. */
export class LogprobSupport {
  readonly #models = new LruMap<string, Known>(MAX_MODELS);

  constructor(private readonly clock: () => number) {}

  /** `top_logprobs` to request; null: do not probe for now. */
  topFor(model: string): number | null {
    const { top, offUntil } = this.#of(model);
    return offUntil !== null && this.clock() < offUntil ? null : top;
  }

  gave(model: string): void {
    this.#models.set(model, { ...this.#of(model), strikes: 0, offUntil: null });
  }

  /** The engine refused them. False: perhaps too many; request fewer. */
  refused(model: string): boolean {
    const known = this.#of(model);
    if (known.top > FEW_LISTED) {
      this.#models.set(model, { ...known, top: FEW_LISTED });
      return false;
    }
    this.off(model);
    return true;
  }

  off(model: string): void {
    this.#models.set(model, { ...UNKNOWN, offUntil: this.clock() + RETRY_AFTER_MS });
  }

  /** A probe failed, for any reason. True: no probes for a while. */
  strike(model: string): boolean {
    const known = this.#of(model);
    const strikes = known.strikes + 1;
    if (strikes >= STRIKES) this.off(model);
    else this.#models.set(model, { ...known, strikes });
    return strikes >= STRIKES;
  }

  #of(model: string): Known {
    return this.#models.get(model) ?? UNKNOWN;
  }
}

type TenantsRequest = ClientRequest & { readonly support: LogprobSupport };

const MAX_ANSWER_BYTES = 1024 * 1024;
/** Statuses with which engines refuse a field of a request; OpenAI's API uses 403 for some models. */
const REFUSED = new Set([400, 403, 422, 501]);
/** Statuses unrelated to log probabilities: the prompt itself will get them too. */
const UNRELATED = new Set([401, 402, 403, 404, 429]);

type Said =
  | { readonly kind: "entropy"; readonly probe: DepthProbe; readonly nats: number }
  | { readonly kind: "too_many" }
  /** `why`: the reason to stop probing for a while; null: continue. */
  | { readonly kind: "unclear"; readonly probe: DepthProbe; readonly why: string | null }
  | { readonly kind: "unavailable"; readonly why: string | null }
  | { readonly kind: "failed"; readonly why: string | null };

/**
 * Chooses how many memories a prompt gets (docs/internals/algorithms.md, "Adaptive depth"). A probe requests one token after the most relevant
 * memories; if that token's entropy is high, the next probe appends more memories, and so hits the prefix of the one before. After any failure
 * the client gets the prompt with all memories.
 */
export class AdaptiveDepth {
  /** Per tenant, because its clients may have caused a refusal. Dropped with the tenant. */
  readonly #supports = new WeakMap<object, LogprobSupport>();

  constructor(private readonly parts: Pick<ChatParts, "upstream" | "readUsage" | "clock">) {}

  /**
   * Does not reject if the engine fails.
   *
   * @param tenant the same object for all of one tenant's requests
   * @param signal aborts when the caller no longer waits for the prompt
   */
  async choose(
    tenant: object,
    given: ClientRequest,
    settings: DepthSettings,
    draftAt: DraftAt,
    signal: AbortSignal,
  ): Promise<ChosenDepth> {
    const request = { ...given, support: this.#supportOf(tenant) };
    const whole = await draftAt(null);
    const model = modelName(request.body["model"]);
    const all = (outcome: DepthOutcome, more: Partial<ChosenDepth & DepthChoice> = {}): ChosenDepth => {
      const { probes = [], after = null, warnings = [] } = more;
      return { blocks: whole.blocks, after, choice: { outcome, probes }, warnings };
    };
    const depths = probeDepths(whole.blocks, settings);
    if (depths.length === 0) return all("few");
    if (whole.noLogprobs !== null) return all("unavailable", { warnings: [unavailable(whole.noLogprobs)] });
    if (request.api.name !== "chat")
      return all("unavailable", { warnings: [unavailable("it needs chat completions")] });
    if (fixesStart(bodyOf(request, whole.messages))) return all("fixed_start");
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), settings.timeLimitMs);
    const either = linkedSignal(limit.signal, signal);
    const probes: DepthProbe[] = [];
    let after: Depth["after"] = null;
    try {
      for (const blocks of depths) {
        if (request.support.topFor(model) === null) return all("unavailable", { probes, after });
        const depth: Depth = { blocks, after, choice: { outcome: "unsure", probes } };
        const probe = async () => {
          // Drafted each time: a memory may have been deleted meanwhile.
          const draft = await draftAt(depth);
          return { draft, said: await this.#try(request, draft, blocks, either.signal, signal) };
        };
        let { draft, said } = await probe();
        if (said.kind === "too_many") ({ draft, said } = await probe());
        if (said.kind === "too_many") return all("unavailable", { probes, after });
        if (said.kind !== "entropy") {
          if (said.kind === "unclear") {
            probes.push(said.probe);
            after = draft.ordering;
          }
          return all(said.kind, { probes, after, warnings: said.why === null ? [] : [unavailable(said.why)] });
        }
        probes.push(said.probe);
        after = draft.ordering;
        if (said.nats <= settings.entropyNats) {
          return { blocks, after, choice: { outcome: "sure", probes }, warnings: [] };
        }
      }
      return all("unsure", { probes, after });
    } finally {
      clearTimeout(timer);
      either.release();
    }
  }

  #supportOf(tenant: object): LogprobSupport {
    return keptIn(this.#supports, tenant, () => new LogprobSupport(this.parts.clock));
  }

  /** Requests the first token of a prompt's answer. Never rejects. */
  async #try(
    request: TenantsRequest,
    draft: DraftedPrompt,
    blocks: number,
    signal: AbortSignal,
    client: AbortSignal,
  ): Promise<Said> {
    const { support } = request;
    const model = modelName(request.body["model"]);
    const top = support.topFor(model);
    if (top === null) return { kind: "unavailable", why: null };
    const failed = (): Said => {
      const isLast = !client.aborted && support.strike(model);
      return { kind: "failed", why: isLast ? "probes failed several times in a row" : null };
    };
    try {
      const { status, text } = await this.#send(request, draft, top, signal);
      if (REFUSED.has(status) && text.toLowerCase().includes("logprob")) {
        if (!support.refused(model)) return { kind: "too_many" };
        return { kind: "unavailable", why: "the engine refuses log probabilities" };
      }
      if (UNRELATED.has(status)) return { kind: "failed", why: null };
      if (status >= 300) return failed();
      return this.#read(support, model, blocks, JSON.parse(text));
    } catch {
      return failed();
    }
  }

  #read(support: LogprobSupport, model: string, blocks: number, answer: unknown): Said {
    const first = readFirstToken(answer);
    if (first === null) {
      support.off(model);
      return { kind: "unavailable", why: "the engine's answers have no log probabilities" };
    }
    const { promptTokens, cachedTokens } = this.parts.readUsage(answer);
    const entropy = first === "none" || isMark(first.likeliest) ? null : mostEntropy(first.logProbabilities);
    const probe = { blocks, entropy, promptTokens, cachedTokens };
    if (entropy === null) {
      const isLast = support.strike(model);
      return {
        kind: "unclear",
        probe,
        why: isLast ? "the first token tells nothing about this model's answers" : null,
      };
    }
    support.gave(model);
    return { kind: "entropy", probe, nats: entropy };
  }

  #send(
    client: ClientRequest,
    draft: DraftedPrompt,
    top: number,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const request = withTools(client, draft.toolTexts);
    const body = request.written({ ...draft.fields, ...firstTokenBody(bodyOf(request, draft.messages), top) });
    const sent = withAdded(forAnotherRequest(request.headers), draft.headers);
    const { query } = request;
    const call = { method: "POST", path: "chat/completions", query, headers: sent, body } as const;
    return inClientSpan("memprefix.depth_probe", {}, async (span) => {
      const answer = await this.parts.upstream.send(call, signal);
      span.setAttribute("http.response.status_code", answer.status);
      const text = await wholeOf(answer.body, this.parts.upstream.name, MAX_ANSWER_BYTES);
      return { status: answer.status, text };
    });
  }
}

function unavailable(why: string): Warning {
  return { code: "depth_unavailable", message: `${why}; all memories are sent at once` };
}
