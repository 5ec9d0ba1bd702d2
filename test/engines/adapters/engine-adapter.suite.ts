import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EngineUsage } from "../../../src/apis/api/usage.js";
import { type EngineAdapter, NO_MARKS } from "../../../src/engines/adapters/engine-adapter.js";
import { anyPrompt, marksIn, promptOf, system, textOf } from "./prompts.js";

/** What an engine has of marks in messages; null for none. */
export interface MarkLimits {
  readonly field: string;
  readonly max: number;
}

const MARK_FIELDS = ["cache_control", "prompt_cache_breakpoint"];
const FIGURES = ["promptTokens", "cachedTokens", "writtenTokens", "completionTokens"] as const;

/** Names that engines use for counts, with anything behind them. */
const anyReport = fc.letrec((tie) => ({
  report: fc.dictionary(
    fc.constantFrom(
      ...["usage", "timings", "message", "prompt_tokens_details", "input_tokens_details"],
      ...["prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "cache_n", "prompt_n"],
      ...["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "predicted_n"],
      ...["prompt_cache_hit_tokens", "prompt_cache_miss_tokens", "__proto__"],
    ),
    fc.oneof({ depthSize: "small" }, fc.nat(2_000), tie("report"), fc.jsonValue(), fc.double()),
  ),
})).report;

/** The behaviour of every engine's adapter. */
export function describeEngineAdapter(adapter: EngineAdapter, limits: MarkLimits | null): void {
  describe(`engine adapter ${adapter.name}`, () => {
    it("never changes the text of a message, nor what else it has", () => {
      fc.assert(
        fc.property(anyPrompt, (prompt) => {
          const { messages } = adapter.emit(prompt);
          expect(messages.map(textOf)).toEqual(prompt.messages.map(textOf));
          const rest = ({ content: _content, ...others }: Readonly<Record<string, unknown>>) => others;
          expect(messages.map(rest)).toEqual(prompt.messages.map(rest));
        }),
      );
    });

    it("emits the same for the same prompt, and leaves the prompt as it is", () => {
      fc.assert(
        fc.property(anyPrompt, (prompt) => {
          const before = structuredClone(prompt);
          const first = adapter.emit(prompt);
          expect(adapter.emit(structuredClone(prompt))).toEqual(first);
          expect(prompt).toEqual(before);
        }),
      );
    });

    it("adds nothing to messages that it has been through", () => {
      fc.assert(
        fc.property(anyPrompt, (prompt) => {
          const { messages } = adapter.emit(prompt);
          expect(adapter.emit({ ...prompt, messages }).messages).toEqual(messages);
        }),
      );
    });

    it("sets no more marks than the provider takes, counting the caller's, and those stay", () => {
      fc.assert(
        fc.property(anyPrompt, (prompt) => {
          const { messages } = adapter.emit(prompt);
          for (const field of MARK_FIELDS) {
            const given = marksIn(prompt.messages, field).length;
            const set = marksIn(messages, field).length;
            const { tools, automatic } = prompt.marksElsewhere ?? NO_MARKS;
            const elsewhere = tools.length + (automatic === null ? 0 : 1);
            const max = field === limits?.field ? limits.max - elsewhere : 0;
            expect(set).toBeLessThanOrEqual(Math.max(given, max));
            expect(set).toBeGreaterThanOrEqual(given);
            const values = (list: typeof messages) =>
              list.flatMap(({ content }) => (Array.isArray(content) ? content : [])).map((part) => part[field]);
            const callers = values(prompt.messages).filter((mark) => mark != null);
            expect(values(messages)).toEqual(expect.arrayContaining(callers));
          }
        }),
      );
    });

    it("splits a message in the same place whatever stands around it", () => {
      fc.assert(
        fc.property(anyPrompt, (prompt) => {
          const texts = ({ content }: (typeof prompt.messages)[number]) =>
            typeof content === "string" ? [content] : (content ?? []).map((part) => part["text"]);
          const together = adapter.emit(prompt).messages.map(texts);
          const alone = prompt.messages.map((message) => {
            const [only] = adapter.emit(promptOf([message], { reusableMessages: [] })).messages;
            return texts(only ?? message);
          });
          expect(together).toEqual(alone);
        }),
      );
    });

    it("says the same of whose messages they are where it does not see them", () => {
      const { fields } = adapter.emit(promptOf([system], { reusableMessages: [] }));
      expect(adapter.emit(promptOf([], { reusableMessages: [] })).fields).toEqual(fields);
    });

    it("keeps tenants apart wherever it tells them apart at all", () => {
      fc.assert(
        fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), (a, b) => {
          fc.pre(a !== b);
          const salt = (tenantKey: string) => adapter.emit(promptOf([system], { tenantKey })).fields["cache_salt"];
          if (salt(a) !== undefined) expect(salt(a)).not.toEqual(salt(b));
        }),
      );
    });

    it("names the request in a header, in characters that a header can carry", () => {
      const { headers } = adapter.emit(promptOf([system]));
      expect(headers["x-request-id"]).toBe("r-1");
      for (const [name, value] of Object.entries(headers)) expect(() => new Headers({ [name]: value })).not.toThrow();
    });

    it("reads a usage out of anything without throwing: whole counts or null, never more cached than the prompt has", () => {
      const isSound = (usage: EngineUsage) => {
        for (const figure of FIGURES) {
          const count = usage[figure];
          expect(count === null || (Number.isSafeInteger(count) && count >= 0)).toBe(true);
        }
        if (usage.promptTokens !== null && usage.cachedTokens !== null)
          expect(usage.cachedTokens).toBeLessThanOrEqual(usage.promptTokens);
      };
      fc.assert(
        fc.property(fc.oneof(fc.jsonValue(), fc.anything(), anyReport), (json) => isSound(adapter.readUsage(json))),
      );
    });

    it("takes what it is not told for unknown, not for zero", () => {
      const unknown = { promptTokens: null, cachedTokens: null, writtenTokens: null, completionTokens: null };
      for (const answer of [null, undefined, {}, { usage: null }, { usage: {} }, [], "text", 5])
        expect(adapter.readUsage(answer)).toMatchObject(unknown);
    });
  });
}
