/* Values of options, read from the command line's text. Each throws commander's `InvalidArgumentError`. */

import { InvalidArgumentError } from "commander";

export function ratio(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number >= 1 && number <= 100)) throw new InvalidArgumentError("must be 1 to 100");
  return number;
}

export function positive(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError("must be a whole number above 0");
  return number;
}

export function positiveNumber(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number > 0)) throw new InvalidArgumentError("must be above 0");
  return number;
}

export function wholeNumber(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < least || number > most)
      throw new InvalidArgumentError(`must be ${least} to ${most}`);
    return number;
  };
}

/** Reads a list separated by commas, without duplicates. */
export function list<T>(item: (text: string) => T): (value: string) => T[] {
  return (value) => [...new Set(value.split(",").map((text) => item(text.trim())))];
}

export function oneOf<const T extends string>(names: readonly T[]): (text: string) => T {
  return (text) => {
    const name = names.find((known) => known === text);
    if (name === undefined) throw new InvalidArgumentError(`Allowed choices are ${names.join(", ")}.`);
    return name;
  };
}
