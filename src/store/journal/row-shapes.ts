import { z } from "zod";

/*
 * Shapes of rows in long lists. Zod's tuples take several times as long as parsing the JSON itself, and a load checks every row of a state:
 * so one shape checks a whole list of rows.
 */

type Check = (value: unknown) => boolean;

export const isInt: Check = Number.isSafeInteger;
/** `1e999` in JSON is none. */
export const isNumber: Check = Number.isFinite;
export const isText: Check = (value) => typeof value === "string";
export const isInts: Check = (value) => Array.isArray(value) && value.every(isInt);

export function isEither(...checks: readonly Check[]): Check {
  return (value) => checks.some((check) => check(value));
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

/** An array of these elements, and no others. */
export function isArrayOf({ first, optional = [], rest }: Elements): Check {
  return (value) => {
    if (!Array.isArray(value) || value.length < first.length) return false;
    for (const [at, check] of first.entries()) if (!check(value[at])) return false;
    for (let at = first.length; at < value.length; at++) {
      const check = optional[at - first.length] ?? rest;
      if (check === undefined || !check(value[at])) return false;
    }
    return true;
  };
}

/** A list of rows; an error says which row is not `what`. */
export function rowsOf<Row>(what: string, isRow: Check): z.ZodType<readonly Row[]> {
  const shape = z.array(z.unknown()).superRefine((rows, context) => {
    const at = rows.findIndex((row) => !isRow(row));
    if (at >= 0) context.addIssue({ code: "custom", message: `expected ${what}`, path: [at] });
  });
  return shape as unknown as z.ZodType<readonly Row[]>;
}

/** Whole numbers: labels, or ids of one kind. */
export const wholeNumbers = rowsOf<number>("a whole number", isInt);
