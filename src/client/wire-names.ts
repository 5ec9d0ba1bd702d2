import type { FieldIssue } from "../service/base/call-types.js";
import { InvalidRequestError } from "./errors.js";

/*
 * Names of fields: snake_case in HTTP's JSON, camelCase in the library's options and answers. One goes into the other by rule. Parts whose
 * keys are not ours (messages, memories, metadata, an engine's fields and headers, rows of the database) stay unmodified.
 */

/** Fields that the library calls otherwise. */
const OTHER_NAMES = { left_out_messages: "leftOut", entropy_nats: "entropy", live_requests: "live" } as const;
const CAMEL_NAMES: ReadonlyMap<string, string> = new Map(Object.entries(OTHER_NAMES));
const WIRE_NAMES: ReadonlyMap<string, string> = new Map([...CAMEL_NAMES].map(([wire, name]) => [name, wire]));

/** {@link camelName} of a name that is known. */
export type CamelName<K> = K extends keyof typeof OTHER_NAMES
  ? (typeof OTHER_NAMES)[K]
  : K extends `${infer Head}_${infer Rest}`
    ? `${Head}${Capitalize<CamelName<Rest>>}`
    : K;

/** {@link wireName} of a name that is known, of a request. */
export type WireName<K> = K extends `${infer Head}${infer Rest}`
  ? `${Head extends Uppercase<Head> ? (Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`) : Head}${WireName<Rest>}`
  : K;

/** HTTP's JSON of a type as the library has it. Objects with any keys are not ours, and stay as they are. */
export type FromWire<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly FromWire<Item>[]
    : string extends keyof T
      ? T
      : T extends object
        ? { readonly [K in keyof T as CamelName<K>]: FromWire<T[K]> }
        : T;

/** Dotted paths of parts that stay unmodified, by their names in JSON; lists add nothing to a path. */
export type UnmodifiedPaths = readonly string[];

/** The library's name of a field of HTTP's JSON. */
export function camelName(wireName: string): string {
  return CAMEL_NAMES.get(wireName) ?? wireName.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

/** The name in HTTP's JSON of a field of the library. */
export function wireName(name: string): string {
  return WIRE_NAMES.get(name) ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Options as HTTP's JSON. Throws {@link InvalidRequestError} for what JSON would say otherwise: a number that is not finite would become
 * null, which counts as absent, and a name in snake_case is no option of the library.
 */
export function toWire(options: unknown, unmodified: UnmodifiedPaths): unknown {
  return renamed(options, { rename: wireName, unmodified, check: true }, [], "");
}

/** HTTP's JSON as the library's answers. */
export function fromWire(json: unknown, unmodified: UnmodifiedPaths): unknown {
  return renamed(json, { rename: camelName, unmodified, check: false }, [], "");
}

/** The field of a problem, as the caller named it. What follows a part that stays unmodified does so too. */
export function camelField(field: string, unmodified: UnmodifiedPaths): string {
  let plain = "";
  let isOurs = true;
  return field
    .split(".")
    .map((step) => {
      const [, name = "", places = ""] = /^([^[]*)(.*)$/s.exec(step) ?? [];
      const written = isOurs ? camelName(name) : name;
      plain = plain === "" ? name : `${plain}.${name}`;
      isOurs &&= !unmodified.includes(plain);
      return `${written}${places}`;
    })
    .join(".");
}

interface Renaming {
  readonly rename: (name: string) => string;
  readonly unmodified: UnmodifiedPaths;
  readonly check: boolean;
}

/** @param shown the path as the caller reads it, for errors */
function renamed(value: unknown, to: Renaming, path: readonly string[], shown: string): unknown {
  if (to.check && typeof value === "number" && !Number.isFinite(value)) {
    throw new InvalidRequestError([{ field: shown, message: `must be a finite number, not ${value}` }]);
  }
  if (Array.isArray(value)) return value.map((item, at) => renamed(item, to, path, `${shown}[${at}]`));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      const at = shown === "" ? name : `${shown}.${name}`;
      if (to.check && name.includes("_")) {
        throw new InvalidRequestError([{ field: at, message: "is not a known field" }]);
      }
      const other = to.rename(name);
      const inner = [...path, to.check ? other : name];
      return [other, to.unmodified.includes(inner.join(".")) ? field : renamed(field, to, inner, at)];
    }),
  );
}

/**
 * Options as a query, with its `?`. Absent ones are left out. Throws {@link InvalidRequestError} for values that a query would say otherwise:
 * everything in it is text, and half of a surrogate pair would become another character.
 */
export function queryOf(options: object): string {
  const issues: FieldIssue[] = [];
  const parts: string[] = [];
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined) continue;
    const message = name.includes("_") ? "is not a known field" : problemOf(value);
    if (message !== null) issues.push({ field: name, message });
    else parts.push(`${wireName(name)}=${encodeURIComponent(String(value))}`);
  }
  if (issues.length > 0) throw new InvalidRequestError(issues);
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function problemOf(value: unknown): string | null {
  if (typeof value === "number") return Number.isFinite(value) ? null : "must be a finite number";
  if (typeof value !== "string") return "must be a text or a number";
  return /\p{Surrogate}/u.test(value) ? "must not contain half of a surrogate pair" : null;
}
