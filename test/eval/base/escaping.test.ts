import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { visibleText } from "../../../src/eval/base/aligned-table.js";
import { markup } from "../../../src/eval/report/html.js";
import { markdownCode, markdownText } from "../../../src/eval/report/markdown.js";

describe("visibleText", () => {
  it.each([
    ["a\r\n\tb", "a b"],
    ["\u202eevil\u2066\ufeff", "[U+202E]evil[U+2066][U+FEFF]"],
    ["\u0000\u001b[31m\u0085", "[U+0000][U+001B][31m[U+0085]"],
    ["👩‍👩‍👧 नमस्ते é", "👩‍👩‍👧 नमस्ते é"],
    ["\ud800", "[U+D800]"],
  ])("of %j is %j", (text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });
});

describe("markup", () => {
  it("escapes what is put in, once, and leaves markup as it is", () => {
    const inner = markup`<b title="${`"x" & 'y'`}">${"<i>"}</b>`;
    expect(markup`<p>${inner}${[inner, " ", 1]}${null}</p>`.source).toBe(
      '<p><b title="&quot;x&quot; &amp; &#39;y&#39;">&lt;i&gt;</b><b title="&quot;x&quot; &amp; &#39;y&#39;">&lt;i&gt;</b> 1</p>',
    );
  });
});

describe("Markdown", () => {
  it.each([
    ["plain-text_1 *x* [a](b) |", "plain-text\\_1 \\*x\\* \\[a\\](b) \\|"],
    ["<b> & $1", "&lt;b&gt; &amp; \\$1"],
  ])("of %j in our words is %j", (text, expected) => {
    expect(markdownText(text)).toBe(expected);
  });

  it.each([
    ["a|b", "`a\\|b`"],
    ["`a``b`", "``` `a``b` ```"],
    [" \n", "(empty)"],
  ])("of %j as code is %j", (text, expected) => {
    expect(markdownCode(text)).toBe(expected);
  });

  it("as code is one line between fences that do not occur in it", () => {
    const text = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.array(fc.constantFrom("`", "a", "\n", "|")).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (given) => {
        const code = markdownCode(given);
        expect(code).not.toMatch(/[\n\r]/);
        if (code === "(empty)") return;
        const fence = /^`+/.exec(code)?.[0] ?? "";
        const runs = code.slice(fence.length, -fence.length).match(/`+/g) ?? [];
        expect(code.endsWith(fence)).toBe(true);
        expect(runs).not.toContain(fence);
      }),
    );
  });
});
