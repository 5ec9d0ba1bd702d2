import { z } from "zod";

/** Most tokens that one model accepts, as its engine lists them; null where not listed. */
export interface ModelLimit {
  /** Of a prompt with its answer. */
  readonly contextTokens: number | null;
  /** Of a prompt alone. */
  readonly promptTokens: number | null;
}

const MOST_MODELS = 1_000;
const NAME_CHARACTERS = 200;

const tokens = z.int().min(1).max(1_000_000_000).nullish().catch(null);
/**
 * In vLLM a LoRA adapter (`parent`) has no `max_model_len`. llama.cpp: `meta.n_ctx` is one slot's context; older versions only have
 * `meta.n_ctx_train`, which may be larger.
 */
const name = z.string().nullish().catch(null);
const model = z.object({
  id: z.string(),
  root: name,
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

export class ModelLimits {
  readonly #listed: ReadonlyMap<string, ListedModel>;
  /** The only listed model: such engines serve it under any name, as llama.cpp does. */
  readonly #only: ListedModel | undefined;

  private constructor(models: readonly ListedModel[]) {
    this.#listed = new Map(models.slice(0, MOST_MODELS).map((each) => [nameOf(each.id), each]));
    this.#only = models.length === 1 ? models[0] : undefined;
  }

  /** Reads the JSON of `GET /v1/models`. Null if it is no list of models; entries of another form are left out. */
  static read(json: unknown): ModelLimits | null {
    const list = modelsList.safeParse(json);
    return list.success ? new ModelLimits(list.data.filter((each) => each !== null)) : null;
  }

  get isLlamaCpp(): boolean {
    return this.#only?.owned_by === "llamacpp";
  }

  /** Further names of the same model: its file, its path, an adapter's base model. */
  namesOf(name: string): readonly string[] {
    const listed = this.#named(name);
    const base = this.#baseOf(listed);
    return [listed?.id, listed?.root, listed?.parent, base?.root].filter((each) => each != null);
  }

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

/** For an answer of unlimited length, with which most engines fill their context. */
const ANSWER_TOKENS = 1_024;

/** Tokens of a prompt that leave room for its answer (`asked`; null: unlimited), but at least half of the context: engines truncate answers. */
export function promptTokensWithin({ contextTokens, promptTokens }: ModelLimit, asked: number | null): number {
  const answer = asked ?? Math.min(ANSWER_TOKENS, Math.floor((contextTokens ?? 0) / 4));
  const beside = contextTokens === null ? null : Math.max(contextTokens - answer, Math.ceil(contextTokens / 2));
  return Math.min(beside ?? Number.POSITIVE_INFINITY, promptTokens ?? Number.POSITIVE_INFINITY);
}
