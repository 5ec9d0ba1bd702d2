import { z } from "zod";

/** Tokens that one model takes, as its engine lists them. */
export interface ModelLimit {
  /** Most tokens of a prompt with its answer; null where not listed. */
  readonly contextTokens: number | null;
  /** Most tokens of a prompt alone; null where not listed. */
  readonly promptTokens: number | null;
}

/** Models of one list whose limits are kept. */
const MOST_MODELS = 1_000;
/** Characters of a model's name that are compared. */
const NAME_CHARACTERS = 200;

/** A field of another type counts as absent. */
const tokens = z.int().min(1).max(1_000_000_000).nullish().catch(null);
/**
 * vLLM and SGLang: `max_model_len`, of which a LoRA adapter (`parent`) has none in vLLM. llama.cpp: `meta.n_ctx`, one
 * slot's context, and in older versions `meta.n_ctx_train` only, which the context may be below. OpenRouter, Together and Fireworks:
 * `context_length`. Groq: `context_window`. Mistral: `max_context_length`. LM Studio: `loaded_context_length`. Anthropic and gateways:
 * `max_input_tokens`.
 */
const name = z.string().nullish().catch(null);
const model = z.object({
  id: z.string(),
  // vLLM and SGLang: what is served under the id.
  root: name,
  // llama.cpp: `llamacpp`.
  owned_by: name,
  parent: z.string().nullish().catch(null),
  max_model_len: tokens,
  loaded_context_length: tokens,
  context_length: tokens,
  context_window: tokens,
  max_context_length: tokens,
  max_input_tokens: tokens,
  meta: z.object({ n_ctx: tokens, n_ctx_train: tokens }).nullish().catch(null),
});
type ListedModel = z.output<typeof model>;

const listed = z.array(model.nullable().catch(null));
/** Together's list is a bare array. */
const modelsList = z.union([z.object({ data: listed }).transform(({ data }) => data), listed]);

/** The models in one list: their limits, and what they are. */
export class ModelLimits {
  readonly #listed: ReadonlyMap<string, ListedModel>;
  /** The only listed model: such engines serve it under any name, as llama.cpp does. */
  readonly #only: ListedModel | undefined;

  private constructor(models: readonly ListedModel[]) {
    this.#listed = new Map(models.slice(0, MOST_MODELS).map((each) => [nameOf(each.id), each]));
    this.#only = models.length === 1 ? models[0] : undefined;
  }

  /** Reads the JSON of `GET /v1/models`. Null where it is no list of models; entries of another form are left out. */
  static read(json: unknown): ModelLimits | null {
    const list = modelsList.safeParse(json);
    return list.success ? new ModelLimits(list.data.filter((each) => each !== null)) : null;
  }

  /** Whether the list is that of a llama.cpp server with one model. */
  get isLlamaCpp(): boolean {
    return this.#only?.owned_by === "llamacpp";
  }

  /** Further names of what is served under this one: its file, its path, the model that an adapter is for. */
  namesOf(name: string): readonly string[] {
    const listed = this.#named(name);
    const base = this.#baseOf(listed);
    return [listed?.id, listed?.root, listed?.parent, base?.root].filter((each) => each != null);
  }

  /** The limit of the model of this name; null where the list has none. */
  of(name: string): ModelLimit | null {
    const listed = this.#named(name);
    const base = this.#baseOf(listed);
    return (listed === undefined ? null : limitOf(listed)) ?? (base === undefined ? null : limitOf(base));
  }

  #named(name: string): ListedModel | undefined {
    return this.#listed.get(nameOf(name)) ?? this.#only;
  }

  #baseOf(adapter: ListedModel | undefined): ListedModel | undefined {
    return adapter?.parent == null ? undefined : this.#listed.get(nameOf(adapter.parent));
  }
}

function limitOf(of: ListedModel): ModelLimit | null {
  const context = of.max_model_len ?? of.loaded_context_length ?? of.meta?.n_ctx ?? of.context_length;
  const contextTokens = context ?? of.context_window ?? of.max_context_length ?? of.meta?.n_ctx_train ?? null;
  const promptTokens = of.max_input_tokens ?? null;
  return contextTokens === null && promptTokens === null ? null : { contextTokens, promptTokens };
}

function nameOf(id: string): string {
  return id.slice(0, NAME_CHARACTERS);
}

/** Tokens that are left for an answer whose request does not say how long it may be: most engines then fill their context. */
const ANSWER_TOKENS = 1_024;

/**
 * Most tokens of a prompt, by the engine's count, that leave room for its answer. Half of the context at least: engines cut an answer short,
 * and those that refuse one that is too long do so by name.
 *
 * @param asked tokens that the request allows its answer; null where it does not say
 */
export function promptTokensWithin({ contextTokens, promptTokens }: ModelLimit, asked: number | null): number {
  const answer = asked ?? Math.min(ANSWER_TOKENS, Math.floor((contextTokens ?? 0) / 4));
  const beside = contextTokens === null ? null : Math.max(contextTokens - answer, Math.ceil(contextTokens / 2));
  return Math.min(beside ?? Number.POSITIVE_INFINITY, promptTokens ?? Number.POSITIVE_INFINITY);
}
