import { InvalidArgumentError } from "commander";

/*
 * Values of options, read from the command line's text. Each throws commander's `InvalidArgumentError`.
 */

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

export function port(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !Number.isInteger(number) || number < 0 || number > 65_535)
    throw new InvalidArgumentError("must be 0 to 65535");
  return number;
}

export function wholeNumber(value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1 || number > 1_000) throw new InvalidArgumentError("must be 1 to 1000");
  return number;
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
