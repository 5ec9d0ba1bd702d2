import { type Span, SpanKind } from "@opentelemetry/api";
import {
  type Depth,
  type DepthChoice,
  type DepthOutcome,
  type DepthProbe,
  type DepthSettings,
  mostEntropy,
  probeDepths,
  type Warning,
} from "../../core/index.js";
import { wholeOf } from "../../engines/upstream/answer-body.js";
import { firstTokenBody, fixesStart, isMark, readFirstToken } from "../../engines/upstream/first-token.js";
import { forAnotherRequest, withAdded } from "../../engines/upstream/upstream.js";
import { linkedSignal } from "../base/linked-signal.js";
import { inSpan } from "../base/spans.js";
import type { ChosenDepth, DraftAt, DraftedPrompt } from "../compose/prompt-planner.js";
import { bodyOf, type ChatParts, type ClientRequest, withTools } from "./chat-request.js";
import { modelName, RefusedModels } from "./engine-limits.js";

/** Largest `top_logprobs`: OpenAI's limit, and vLLM's default. */
const MOST_LISTED = 20;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Statuses with which engines refuse a field of a request; OpenAI's API uses 403 for some models. */
const REFUSED = new Set([400, 403, 422, 501]);

type Said =
  | { readonly kind: "entropy"; readonly probe: DepthProbe; readonly nats: number }
  /** `why`: the reason to stop probing the model for a while. */
  | { readonly kind: "unclear"; readonly probe: DepthProbe; readonly why: string }
  | { readonly kind: "unavailable"; readonly why: string }
  | { readonly kind: "failed" };

/**
 * Chooses how many memories a prompt gets (docs/internals/algorithms.md, "Adaptive depth"). A probe requests one token after the most relevant
 * memories; if that token's entropy is high, the next probe appends more memories, and so hits the prefix of the one before. After any failure
 * the client gets the prompt with all memories.
 */
export class AdaptiveDepth {
  /** Models whose first tokens are special, come without log probabilities, or come too late. */
  readonly #refused: RefusedModels;

  constructor(private readonly parts: Pick<ChatParts, "upstream" | "readUsage" | "clock">) {
    this.#refused = new RefusedModels(parts.clock);
  }

  /** Does not reject if the engine fails. @param tenant the same object for all of its requests @param signal the caller no longer waits */
  async choose(
    tenant: object,
    request: ClientRequest,
    settings: DepthSettings,
    draftAt: DraftAt,
    signal: AbortSignal,
  ): Promise<ChosenDepth> {
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
    if (this.#refused.has(tenant, model)) return all("unavailable");
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), settings.timeLimitMs);
    const either = linkedSignal(limit.signal, signal);
    const probes: DepthProbe[] = [];
    let after: Depth["after"] = null;
    /** The model is not tried for a while. */
    const refused = (outcome: DepthOutcome, why: string) => {
      this.#refused.add(tenant, model);
      return all(outcome, { probes, after, warnings: [unavailable(why)] });
    };
    try {
      for (const blocks of depths) {
        // Drafted each time: a memory may have been deleted meanwhile.
        const draft = await draftAt({ blocks, after, choice: { outcome: "unsure", probes } });
        const said = await this.#try(request, draft, blocks, either.signal);
        if (said.kind === "failed") {
          const isLate = limit.signal.aborted;
          return isLate
            ? refused("failed", "the engine's first token takes too long")
            : all("failed", { probes, after });
        }
        if (said.kind !== "unavailable") {
          probes.push(said.probe);
          after = draft.ordering;
        }
        if (said.kind !== "entropy") return refused(said.kind, said.why);
        if (said.nats <= settings.entropyNats)
          return { blocks, after, choice: { outcome: "sure", probes }, warnings: [] };
      }
      return all("unsure", { probes, after });
    } finally {
      clearTimeout(timer);
      either.release();
    }
  }

  /** Requests the first token of a prompt's answer. Never rejects. */
  async #try(request: ClientRequest, draft: DraftedPrompt, blocks: number, signal: AbortSignal): Promise<Said> {
    try {
      const { status, text } = await this.#send(request, draft, signal);
      if (REFUSED.has(status) && text.toLowerCase().includes("logprob"))
        return { kind: "unavailable", why: "the engine refuses log probabilities" };
      return status >= 300 ? { kind: "failed" } : this.#read(blocks, JSON.parse(text));
    } catch {
      return { kind: "failed" };
    }
  }

  #read(blocks: number, answer: unknown): Said {
    const first = readFirstToken(answer);
    if (first === null) return { kind: "unavailable", why: "the engine's answers have no log probabilities" };
    const { promptTokens, cachedTokens } = this.parts.readUsage(answer);
    const entropy = first === "none" || isMark(first.likeliest) ? null : mostEntropy(first.logProbabilities);
    const probe = { blocks, entropy, promptTokens, cachedTokens };
    return entropy === null
      ? { kind: "unclear", probe, why: "the first token tells nothing about this model's answers" }
      : { kind: "entropy", probe, nats: entropy };
  }

  #send(
    client: ClientRequest,
    draft: DraftedPrompt,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const request = withTools(client, draft.toolTexts);
    const body = request.written({ ...draft.fields, ...firstTokenBody(bodyOf(request, draft.messages), MOST_LISTED) });
    const sent = withAdded(forAnotherRequest(request.headers), draft.headers);
    const { query } = request;
    const call = { method: "POST", path: "chat/completions", query, headers: sent, body } as const;
    const probe = async (span: Span) => {
      const answer = await this.parts.upstream.send(call, signal);
      span.setAttribute("http.response.status_code", answer.status);
      const text = await wholeOf(answer.body, this.parts.upstream.name, MAX_ANSWER_BYTES);
      return { status: answer.status, text };
    };
    return inSpan("memprefix.depth_probe", {}, probe, SpanKind.CLIENT);
  }
}

function unavailable(why: string): Warning {
  return { code: "depth_unavailable", message: `${why}; all memories are sent at once` };
}
