import { promptTokensWithin } from "../../engines/upstream/model-limits.js";
import { MessagesTooLongError } from "../base/errors.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import type { TokenRatios } from "../learning/token-ratios.js";
import type { ComposeRequest } from "./compose-request.js";

/** A request with its limits as the planner applies them. */
export interface LimitedRequest {
  readonly request: ComposeRequest;
  /** Rewrites the planner's error in the terms of the limit that the caller knows; other errors are returned unmodified. */
  readonly named: (error: unknown) => unknown;
}

/** Finds the limits of a request's prompt, and converts them from the engine's tokens to those of memstem's counter. */
export class PromptLimits {
  constructor(
    private readonly parts: Pick<MemstemParts, "defaults">,
    private readonly ratios: TokenRatios,
  ) {}

  /**
   * The hard limit is the request's, else the configured one. Where neither is set, the engine's own is a soft one: messages that come to
   * more are composed without memories, and the engine decides. Read when the prompt is composed: reports of the user's earlier prompts
   * count.
   */
  limited(request: ComposeRequest): LimitedRequest {
    const { userId, destination } = request;
    const { model = "", besideTokens = 0 } = destination ?? {};
    const ratioFor = (limit: number) => this.ratios.ratioFor({ userId, model }, limit);
    const counted = (limit: number) => Math.max(1, Math.floor(limit / ratioFor(limit)) - besideTokens);
    const most = request.maxPromptTokens ?? this.parts.defaults.maxPromptTokens ?? null;
    if (most !== null) {
      return {
        request: { ...request, maxPromptTokens: counted(most) },
        named: (error) =>
          error instanceof MessagesTooLongError
            ? new MessagesTooLongError(Math.ceil((error.tokens + besideTokens) * ratioFor(most)), most)
            : error,
      };
    }
    const limits = [request.acceptedTokens, mapped(this.#ofEngine(request), counted)];
    const acceptedTokens = limits.reduce<number | null>((least, limit) => leastOf(least, limit ?? null), null);
    const isSame = acceptedTokens === (request.acceptedTokens ?? null);
    return { request: isSame ? request : { ...request, acceptedTokens }, named: (error) => error };
  }

  /** Most tokens of a prompt by its engine's own count; null where it is not known. */
  #ofEngine({ destination, engine }: ComposeRequest): number | null {
    if (destination != null) return destination.promptTokens;
    const { contextTokens = null, engineFamily } = this.parts.defaults;
    // A prompt of another family goes to another engine.
    if (contextTokens === null || (engine ?? engineFamily) !== engineFamily) return null;
    return promptTokensWithin({ contextTokens, promptTokens: null }, null);
  }
}

/** The lower of two limits; null where there is none. */
function leastOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

function mapped(limit: number | null, to: (limit: number) => number): number | null {
  return limit === null ? null : to(limit);
}
