import { describe, expect, it } from "vitest";
import { readSettings } from "../../src/cli/settings.js";

describe("a setting that is a number", () => {
  it.each(["0", "99999999999999", "eighty", "1.5"])("is refused beyond its bounds, by its name: %s", (value) => {
    expect(() => readSettings({ MEMPREFIX_SOURCE: "none", MEMPREFIX_TOP_K: value })).toThrow("MEMPREFIX_TOP_K");
  });
});
