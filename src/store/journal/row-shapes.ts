import { z } from "zod";

/*
 * Shapes of what is stored in long lists. A load checks every row of a state, and zod's tuples take several times as long as parsing the
 * JSON itself: here a shape is one function, and where a value does not have it, a second walk finds out where.
 */

type Check = (value: unknown) => boolean;

export const isInt: Check = Number.isSafeInteger;
/** `1e999` in JSON is none. */
export const isNumber: Check = Number.isFinite;
export const isText: Check = (value) => typeof value === "string";
const isNull: Check = (value) => value === null;

export function isEither(...checks: readonly Check[]): Check {
  return (value) => {
    for (const check of checks) if (check(value)) return true;
    return false;
  };
}

export function orNull(check: Check): Check {
  return isEither(isNull, check);
}

export function isOneOf(...values: readonly unknown[]): Check {
  return (value) => values.includes(value);
}

export function matches(pattern: RegExp): Check {
  return (value) => typeof value === "string" && pattern.test(value);
}

/** What an array begins with, and what may follow: some elements, or any number of one kind. */
interface Elements {
  readonly first: readonly Check[];
  readonly optional?: readonly Check[];
  readonly rest?: Check;
}

/** Checks by their parts, to find out which of them a value lacks. */
const PARTS = new WeakMap<Check, (key: string) => Check | undefined>();
/** What checks are told as. */
const NAMES = new WeakMap<Check, string>();

/** An array of these elements, and no others. */
export function isArrayOf({ first, optional = [], rest }: Elements): Check {
  const check: Check = (value) => {
    if (!Array.isArray(value) || value.length < first.length) return false;
    for (let at = 0; at < first.length; at++) if (!first[at]?.(value[at])) return false;
    for (let at = first.length; at < value.length; at++) {
      const later = optional[at - first.length] ?? rest;
      if (later === undefined || !later(value[at])) return false;
    }
    return true;
  };
  PARTS.set(check, (key) => first[Number(key)] ?? optional[Number(key) - first.length] ?? rest);
  return check;
}

/** Any number of elements of one kind. */
export function isListOf(rest: Check): Check {
  return isArrayOf({ first: [], rest });
}

export const isInts: Check = isListOf(isInt);

/** An object with these fields, those that are optional or absent, and no others. */
export function isObjectOf(
  fields: Readonly<Record<string, Check>>,
  optional: Readonly<Record<string, Check>> = {},
): Check {
  const required = Object.entries(fields);
  // No plain object: a key may be `constructor`.
  const parts = new Map([...required, ...Object.entries(optional)]);
  const check: Check = (value) => {
    if (!isObject(value)) return false;
    for (const [key, part] of required) if (!part(value[key])) return false;
    for (const key in value) if (!parts.get(key)?.(value[key])) return false;
    return true;
  };
  PARTS.set(check, (key) => parts.get(key));
  return check;
}

/** Whether a parsed value is neither a list nor null nor a plain value. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The same check; an error names the innermost one that a value does not pass. */
export function named(what: string, check: Check): Check {
  const same: Check = (value) => check(value);
  NAMES.set(same, what);
  const parts = PARTS.get(check);
  if (parts !== undefined) PARTS.set(same, parts);
  return same;
}

/** A check as a shape among others of zod's: an error says where it ends, and what was expected there. */
export function shaped<T>(what: string, check: Check): z.ZodType<T> {
  const shape = z.unknown().superRefine((value, context) => {
    if (check(value)) return;
    const { expected, path } = misfitIn(value, check, what);
    context.addIssue({ code: "custom", message: `expected ${expected}`, path: [...path] });
  });
  return shape as unknown as z.ZodType<T>;
}

/** A list of rows; an error says which row is not `what`. */
export function rowsOf<Row>(what: string, isRow: Check): z.ZodType<readonly Row[]> {
  return shaped<readonly Row[]>("a list", isListOf(named(what, isRow)));
}

/** The way to the innermost element that a value does not have as it should be, and the last name on it. */
function misfitIn(
  value: unknown,
  check: Check,
  above: string,
): { readonly expected: string; readonly path: readonly (string | number)[] } {
  const expected = NAMES.get(check) ?? above;
  const partOf = PARTS.get(check);
  if (partOf === undefined || typeof value !== "object" || value === null) return { expected, path: [] };
  for (const [key, element] of Object.entries(value)) {
    const part = partOf(key);
    if (part === undefined || part(element)) continue;
    const inner = misfitIn(element, part, expected);
    return { ...inner, path: [Array.isArray(value) ? Number(key) : key, ...inner.path] };
  }
  return { expected, path: [] };
}
