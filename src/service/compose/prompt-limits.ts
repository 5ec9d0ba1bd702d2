import { type ComposeInput, PromptTooLongError } from "../../core/index.js";
import { MessagesTooLongError } from "../base/errors.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import type { TokenRatios } from "../learning/engine-measures.js";
import { type ComposeRequest, modelOf } from "./compose-request.js";

/** Finds a prompt's limits, and converts them from the engine's tokens to memprefix's. */
export class PromptLimits {
  constructor(
    private readonly parts: Pick<MemprefixParts, "defaults">,
    private readonly ratios: TokenRatios,
  ) {}

  /**
   * The request's limit, else the configured one, is hard. Without either, the engine's own is soft: the engine decides. Computed when the prompt
   * is planned, so reports of the user's earlier prompts count. By memprefix's counter; null: none.
   */
  of(request: ComposeRequest): Pick<ComposeInput, "maxPromptTokens" | "acceptedTokens"> {
    const { acceptedTokens = null } = request;
    const most = this.#mostOf(request);
    if (most !== null) return { maxPromptTokens: this.#counted(request, most), acceptedTokens };
    const ofEngine = request.destination?.promptTokens ?? null;
    const counted = ofEngine === null ? null : this.#counted(request, ofEngine);
    const isLower = acceptedTokens === null || (counted !== null && counted < acceptedTokens);
    return { maxPromptTokens: null, acceptedTokens: isLower ? counted : acceptedTokens };
  }

  /** Runs `work`; its {@link MessagesTooLongError} names the limit that the caller knows. */
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
