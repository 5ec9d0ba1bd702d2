import { type ProviderPrice, priceOf } from "../../core/cost/prices.js";
import {
  type CacheLookup,
  DEFAULT_HISTORY,
  endlessLookup,
  type HistoryName,
  type PromptRoot,
  type SentAfter,
  type SentTools,
  toolsToSend,
} from "../../core/index.js";
import type { EngineAdapter, EngineName } from "../../engines/adapters/engine-adapter.js";
import { keepsThoughtsByName } from "../../engines/adapters/kept-thoughts.js";
import { isMistralModel } from "../../engines/adapters/mistral.js";
import { engineFamilyFor, type TenantParts } from "../base/memprefix-parts.js";
import { streamOf, type WorkingConversation, type WorkingScope } from "../scopes/working-scopes.js";
import { type ComposeRequest, modelOf } from "./compose-request.js";

/** What one request gets: its own fields, else the configuration. */
export class RequestTerms {
  /** Null: no name. */
  readonly model: string | null;
  readonly family: EngineName;
  readonly engine: EngineAdapter;
  readonly history: HistoryName;
  /** The workers to choose from; empty: no routing. */
  readonly workers: readonly string[];
  /** Not where the engine continues its own history: it gets the request's instructions in any case. */
  readonly keepsInstructions: boolean;
  /** Whether memories go into tool results: the engine family or the model takes no user message after them. */
  readonly isInResult: boolean;
  /** Whether the caller sends the prompt to another engine family than the configured one. */
  readonly #goesElsewhere: boolean;

  constructor(
    readonly request: ComposeRequest,
    private readonly parts: TenantParts,
  ) {
    const { defaults, engines } = parts;
    this.model = modelOf(request) || null;
    const configured = engineFamilyFor(defaults, this.model);
    this.family = request.engine ?? configured;
    this.engine = engines[this.family];
    this.#goesElsewhere = request.destination == null && this.family !== configured;
    this.history = request.history ?? DEFAULT_HISTORY;
    this.workers = request.workers ?? defaults.workers ?? [];
    this.keepsInstructions = defaults.stableInstructions === true && request.sentNow === undefined;
    const { model, inResult = false } = request;
    this.isInResult =
      inResult || this.engine.inResult === true || isMistralModel(this.model) || keepsThoughtsByName(model);
  }

  /** The cache that the prompt will meet; undefined: unknown. */
  get cache(): TenantParts["cache"] {
    return this.#goesElsewhere ? undefined : this.parts.cache;
  }

  lookup({ scope, scopeId }: WorkingScope): CacheLookup {
    const found = this.cache?.lookup(streamOf(scope, this.request.conversationId), scopeId);
    return found ?? endlessLookup(this.parts.residency);
  }

  /** The prompt's prices; null: no known provider bills it. */
  get price(): ProviderPrice | null {
    const host = this.#goesElsewhere ? null : (this.parts.defaults.engineHost ?? null);
    return priceOf({ host, family: this.family }, this.model);
  }

  /** Tokens that the engine counts in addition to the prompt. */
  get besideTokens(): number {
    const { destination, toolTexts } = this.request;
    return destination?.besideTokens ?? (toolTexts == null ? 0 : this.parts.countTokens(`[${toolTexts.join()}]`));
  }

  toolsAfter(conversation: Pick<WorkingConversation, "turns"> | null): SentTools {
    const known = conversation?.turns.sentAfter?.tools ?? [];
    return toolsToSend(this.request.toolTexts ?? [], known, this.parts.defaults.stableTools ?? true);
  }

  rootWith({ digest }: SentTools): PromptRoot {
    return { model: this.model ?? "", tools: digest };
  }
}

/** What to store of a conversation; null: what is stored. */
export function sentAfterNow(known: SentAfter | null, now: SentAfter): SentAfter | null {
  const { model, tools } = now.root;
  const isSame =
    known !== null && known.tools === now.tools && known.root.model === model && known.root.tools === tools;
  return isSame ? null : now;
}
