import fc from "fast-check";
import { expect } from "vitest";
import { DamagedRecordError } from "../../../src/store/journal/said-codec.js";

/** Where a text is damaged, and how. */
export const anyDamage = fc.record({
  at: fc.nat(1_000_000),
  by: fc.oneof(
    fc.constantFrom("", "[", "]", "{", "}", '"', ",", "0", "-", "null", '"x"', "1e999", '{"a":1}'),
    fc.string({ maxLength: 2 }),
  ),
  drops: fc.integer({ min: 0, max: 6 }),
});
type Damage = typeof anyDamage extends fc.Arbitrary<infer Made> ? Made : never;

export function damaged(text: string, { at, by, drops }: Damage): string {
  const start = at % text.length;
  return text.slice(0, start) + by + text.slice(start + drops);
}

/** Damaged text is either refused with an error that names the body and quotes nothing, or read as something else. */
export function expectRefusedOrRead(text: string, what: string, decode: (text: string) => unknown): void {
  try {
    decode(text);
  } catch (error) {
    expect(error).toBeInstanceOf(DamagedRecordError);
    expect(String(error)).toMatch(
      new RegExp(`^DamagedRecordError: ${what}: not (valid JSON|of format 1|as it is written)$`),
    );
  }
}
