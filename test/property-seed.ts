import fc from "fast-check";

/**
 * Properties are tried on the same inputs every time, so that a change is judged by what it changes. `PROPERTY_SEED` tries others:
 * it is a whole number, or `any` for one by chance, which a failure prints.
 */
const seed = process.env["PROPERTY_SEED"] ?? "20261121";
if (seed !== "any") {
  if (!/^-?\d+$/.test(seed)) throw new RangeError(`PROPERTY_SEED is ${seed}, not a whole number or "any"`);
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });
}
