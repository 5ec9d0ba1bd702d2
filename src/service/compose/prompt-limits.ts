import { PromptTooLongError } from "../../core/index.js";
import { MessagesTooLongError } from "../base/errors.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import type { TokenRatios } from "../learning/engine-measures.js";
import { type ComposeRequest, modelOf } from "./compose-request.js";

/** Limits of one prompt, by memprefix's counter; null: none. */
interface TokenLimits {
  /** Of a prompt with memories; messages that alone come to more are rejected. */
  readonly maxPromptTokens: number | null;
  /** The same, but messages that come to more are composed without memories. */
  readonly acceptedTokens: number | null;
}

/** Finds the limits of a request's prompt, and converts them from the engine's tokens to those of memprefix's counter. */
export class PromptLimits {
  constructor(
    private readonly parts: Pick<MemprefixParts, "defaults">,
    private readonly ratios: TokenRatios,
  ) {}

  /**
   * The hard limit is the request's, else the configured one. Where neither is set, the engine's own is a soft one: the engine decides. Read
   * when the prompt is planned: reports of the user's earlier prompts count.
   */
  of(request: ComposeRequest): TokenLimits {
    const { acceptedTokens = null } = request;
    const most = this.#mostOf(request);
    if (most !== null) return { maxPromptTokens: this.#counted(request, most), acceptedTokens };
    const ofEngine = request.destination?.promptTokens ?? null;
    const counted = ofEngine === null ? null : this.#counted(request, ofEngine);
    const isLower = acceptedTokens === null || (counted !== null && counted < acceptedTokens);
    return { maxPromptTokens: null, acceptedTokens: isLower ? counted : acceptedTokens };
  }

  /** Does work of the core; throws {@link MessagesTooLongError} in the core's stead, in the terms of the limit that the caller knows. */
  within<T>(request: ComposeRequest, work: () => T): T {
    try {
      return work();
    } catch (error) {
      const most = this.#mostOf(request);
      if (!(error instanceof PromptTooLongError) || most === null) throw error;
      const { besideTokens = 0 } = request.destination ?? {};
      throw new MessagesTooLongError(Math.ceil((error.tokens + besideTokens) * this.#ratio(request, most)), most);
    }
  }

  #mostOf({ maxPromptTokens }: ComposeRequest): number | null {
    return maxPromptTokens ?? this.parts.defaults.maxPromptTokens ?? null;
  }

  #counted(request: ComposeRequest, limit: number): number {
    const { besideTokens = 0 } = request.destination ?? {};
    return Math.max(1, Math.floor(limit / this.#ratio(request, limit)) - besideTokens);
  }

  #ratio(request: ComposeRequest, limit: number): number {
    return this.ratios.ratioFor({ userId: request.userId, model: modelOf(request) }, limit);
  }
}
