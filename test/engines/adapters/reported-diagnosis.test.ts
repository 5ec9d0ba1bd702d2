import { describe, expect, it } from "vitest";
import { readAnthropicDiagnosis, readOpenAiDiagnosis } from "../../../src/engines/adapters/reported-diagnosis.js";

const NOTHING = { reason: null, missedTokens: null, reusableTokens: null };

describe("OpenAI's cache diagnostics", () => {
  const read = (prompt_cache_diagnostics: unknown) => readOpenAiDiagnosis({ id: "resp_1", prompt_cache_diagnostics });

  it("name the first difference, and tokens", () => {
    const given = {
      type: "cache_miss",
      reason: "prompt_cache_key_changed",
      comparison_reusable_tokens: 1280,
      cache_missed_tokens: 1280,
    };
    expect(read(given)).toEqual({
      provider: "openai",
      outcome: "miss",
      reason: "prompt_cache_key_changed",
      missedTokens: 1280,
      reusableTokens: 1280,
    });
  });

  it.each([
    [{ type: "cache_hit" }, { outcome: "no_miss" }],
    [{ type: "comparison_response_not_found" }, { outcome: "not_found" }],
    [{ type: "unavailable" }, { outcome: "unavailable" }],
    [
      { type: "of_a_later_version", cache_missed_tokens: 3 },
      { outcome: "unavailable", reason: "of_a_later_version", missedTokens: 3 },
    ],
    [{ type: "cache_miss", reason: "Ada drinks tea", cache_missed_tokens: -1 }, { outcome: "miss" }],
  ])("may be %o", (given, expected) => {
    expect(read(given)).toEqual({ provider: "openai", ...NOTHING, ...expected });
  });

  it.each([null, undefined, "cache_miss", [], { type: 4 }, {}])("are none where they are %o", (given) => {
    expect(read(given)).toBeNull();
  });
});

describe("Anthropic's cache diagnostics", () => {
  const read = (diagnostics: unknown, wasCompared = true) =>
    readAnthropicDiagnosis({ id: "msg_1", diagnostics }, wasCompared);

  it.each([
    [
      { cache_miss_reason: { type: "tools_changed", cache_missed_input_tokens: 41_735 } },
      { outcome: "miss", reason: "tools_changed", missedTokens: 41_735 },
    ],
    [{ cache_miss_reason: { type: "of_a_later_version" } }, { outcome: "miss", reason: "of_a_later_version" }],
    [{ cache_miss_reason: { type: "previous_message_not_found" } }, { outcome: "not_found" }],
    [{ cache_miss_reason: { type: "unavailable" } }, { outcome: "unavailable" }],
    [{ cache_miss_reason: null }, { outcome: "pending" }],
    [null, { outcome: "no_miss" }],
  ])("may be %o", (given, expected) => {
    expect(read(given)).toEqual({ provider: "anthropic", ...NOTHING, ...expected });
  });

  it("are none where nothing was compared, or the message says nothing that is known", () => {
    expect(read(null, false)).toBeNull();
    for (const given of [undefined, {}, { cache_miss_reason: { type: 5 } }, { cache_miss_reason: "no" }, "no"])
      expect(read(given)).toBeNull();
    expect(readAnthropicDiagnosis(null, true)).toBeNull();
  });
});
