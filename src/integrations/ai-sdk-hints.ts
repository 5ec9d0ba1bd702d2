import type { EngineHints } from "../service/compose/composed-prompt.js";
import { type AiSdkCall, BYPASS, headerIn } from "./ai-sdk-call-options.js";

/** OpenAI's own body fields, as its provider's options name them. */
const OPENAI_OPTIONS: Readonly<Record<string, string>> = {
  prompt_cache_key: "promptCacheKey",
  prompt_cache_options: "promptCacheOptions",
};
/** Providers that take OpenAI's options, by what their names begin with. */
const OPENAI_PROVIDERS: ReadonlySet<string> = new Set(["openai", "azure", "gateway"]);

/**
 * A call with what the engine is to be sent along: headers, and fields of its body as options of the provider. OpenAI's provider has names of
 * its own for them; those for OpenAI-compatible engines put options under their own name into the body; others ignore what they do not know.
 * What the caller set stays. Through memstem's proxy the prompt is not composed again.
 *
 * @param provider the model's, such as `openai.responses`
 */
export function withHints(call: AiSdkCall, { fields, headers }: EngineHints, provider: string): AiSdkCall {
  const added = Object.entries({ ...headers, [BYPASS]: "true" }).filter(
    ([name]) => headerIn(call.headers, name) === undefined,
  );
  const [name = ""] = provider.split(".");
  const isOpenAi = OPENAI_PROVIDERS.has(name);
  const options = Object.entries(fields).flatMap(([field, value]): [string, unknown][] => {
    if (!isOpenAi) return [[field, value]];
    const option = OPENAI_OPTIONS[field];
    return option === undefined ? [] : [[option, value]];
  });
  const sent = { ...call, headers: { ...call.headers, ...Object.fromEntries(added) } };
  if (options.length === 0) return sent;
  const place = isOpenAi ? "openai" : name;
  const own = { ...Object.fromEntries(options), ...call.providerOptions?.[place] };
  return { ...sent, providerOptions: { ...call.providerOptions, [place]: own as ProviderOptions } };
}

type ProviderOptions = NonNullable<AiSdkCall["providerOptions"]>[string];
