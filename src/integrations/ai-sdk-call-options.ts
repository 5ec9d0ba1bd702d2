import type { LanguageModelMiddleware } from "ai";

/** A call of a model as the middleware of the installed AI SDK gets it: `LanguageModelV3CallOptions` or `LanguageModelV4CallOptions`. */
export type AiSdkCall = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];

/** What a call says of itself in `providerOptions.memstem`. */
export interface NamedInCall {
  readonly userId?: string;
  readonly agentId?: string;
  readonly conversationId?: string;
  /** In any of Mem0's result shapes. */
  readonly memories?: unknown;
}

/** A call, and what it says to memstem. */
export interface ReadCall {
  /** Null: it cannot be read. */
  readonly named: NamedInCall | null;
  /** The call without what it says to memstem; the same object where it says nothing. */
  readonly call: AiSdkCall;
  /** Whether it is to be sent as it is. */
  readonly isBypassed: boolean;
}

/** The header with which memstem's proxy composes nothing. */
export const BYPASS = "x-memstem-bypass";

const NAMES = ["userId", "agentId", "conversationId"] as const;
const KNOWN: ReadonlySet<string> = new Set([...NAMES, "memories", "bypass"]);

/** Reads a call's options; null counts as absent. Invalid options are reported, and the call has none. */
export function callOptions(params: AiSdkCall, onError: (error: unknown) => void): ReadCall {
  // A middleware in front of this one composed the prompt, or the caller wants none composed.
  const isBypassed = headerIn(params.headers, BYPASS) === "true";
  const given: unknown = params.providerOptions?.["memstem"];
  if (given === undefined) return { named: {}, call: params, isBypassed };
  const { memstem: _ours, ...providerOptions } = params.providerOptions ?? {};
  const { providerOptions: _all, ...others } = params;
  const call = Object.keys(providerOptions).length === 0 ? others : { ...others, providerOptions };
  const problem = problemOf(given);
  if (problem !== null) {
    onError(new TypeError(`providerOptions.memstem${problem}`));
    return { named: null, call, isBypassed };
  }
  const said = Object.entries(given as object).filter(([, value]) => value != null);
  const { bypass, ...named } = Object.fromEntries(said) as NamedInCall & { readonly bypass?: boolean };
  return { named, call, isBypassed: isBypassed || bypass === true };
}

/** The value of a header, whose name may have capitals. */
export function headerIn(headers: AiSdkCall["headers"], name: string): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}

/** What is wrong with the options, from their name on; null: nothing. */
function problemOf(given: unknown): string | null {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return " must be an object";
  const options = given as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(options).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) return `.${unknown} is not a known option`;
  const wrong = NAMES.find((name) => options[name] != null && typeof options[name] !== "string");
  if (wrong !== undefined) return `.${wrong} must be a text`;
  const { bypass } = options;
  return bypass == null || typeof bypass === "boolean" ? null : ".bypass must be true or false";
}
