/*
 * Field names: snake_case in HTTP's JSON, camelCase in the library, converted by rule. Parts whose keys are not ours (messages, memories,
 * metadata, an engine's fields and headers, database rows) stay unmodified. No imports: the client runs this in browsers.
 */

/** Exceptions to the rule. */
const OTHER_NAMES = { left_out_messages: "leftOut", entropy_nats: "entropy" } as const;
const CAMEL_NAMES: ReadonlyMap<string, string> = new Map(Object.entries(OTHER_NAMES));
const WIRE_NAMES: ReadonlyMap<string, string> = new Map([...CAMEL_NAMES].map(([wire, name]) => [name, wire]));

/** The type of {@link camelName}. */
export type CamelName<K> = K extends keyof typeof OTHER_NAMES
  ? (typeof OTHER_NAMES)[K]
  : K extends `${infer Head}_${infer Rest}`
    ? `${Head}${Capitalize<CamelName<Rest>>}`
    : K;

/** The type of {@link wireName}, for requests. */
export type WireName<K> = K extends `${infer Head}${infer Rest}`
  ? `${Head extends Uppercase<Head> ? (Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`) : Head}${WireName<Rest>}`
  : K;

/** HTTP's JSON as the library's type. Objects with arbitrary keys are not ours and stay as they are. */
export type FromWire<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly FromWire<Item>[]
    : string extends keyof T
      ? T
      : T extends object
        ? { readonly [K in keyof T as CamelName<K>]: FromWire<T[K]> }
        : T;

/** Dotted paths of parts that stay unmodified, in JSON's names; lists add nothing to a path. */
export type UnmodifiedPaths = readonly string[];

export function camelName(wireName: string): string {
  return CAMEL_NAMES.get(wireName) ?? wireName.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

export function wireName(name: string): string {
  return WIRE_NAMES.get(name) ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function toWire(options: unknown, unmodified: UnmodifiedPaths = []): unknown {
  return renamed(options, wireName, unmodified, "");
}

export function fromWire(json: unknown, unmodified: UnmodifiedPaths = []): unknown {
  return renamed(json, camelName, unmodified, "");
}

/** @param at the value's path, in JSON's names */
function renamed(value: unknown, rename: (name: string) => string, unmodified: UnmodifiedPaths, at: string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename, unmodified, at));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      const path = at === "" ? wireName(name) : `${at}.${wireName(name)}`;
      return [rename(name), unmodified.includes(path) ? field : renamed(field, rename, unmodified, path)];
    }),
  );
}
