import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import {
  BlockTemplates,
  blockTemplateProblem,
  readBlockTemplate,
  renderMemory,
  timeZoneProblem,
} from "../../../src/core/blocks/block-template.js";
import { type MemoryFields, ownWords } from "../../../src/core/blocks/context-block.js";
import { parseSection, renderSection } from "../../../src/core/prompt/section.js";
import type { Label, MemoryId } from "../../../src/core/text/ids.js";
import { CUT_MARK, canonicalText } from "../../../src/core/text/memory-text.js";
import { labelsNamed } from "../prompt/prompt-promises.js";

const MAX = 100_000;

function rendered(
  source: string,
  fields: MemoryFields = {},
  { text = "Ana likes tea.", zone = "UTC", max = MAX } = {},
) {
  return renderMemory(readBlockTemplate(source, zone), { id: "m" as MemoryId, text, fields }, max);
}

function textOf(source: string, fields: MemoryFields = {}, zone = "UTC"): string {
  return rendered(source, fields, { zone }).memory.text;
}

const SAID: MemoryFields = {
  createdAt: "2023-05-08T13:56:01.275141-07:00",
  updatedAt: "2023-06-01T00:30:00Z",
  categories: ["food", "drinks"],
  metadata: { session: "s-12", turn: 7, sure: true, tags: ["a", "b"], at: 1_683_579_361, "deep.key": "x" },
};

describe("a block template", () => {
  it.each([
    ["{memory}", "Ana likes tea."],
    ["{date} {memory}", "2023-05-08 Ana likes tea."],
    ["{date}: {memory}", "2023-05-08: Ana likes tea."],
    ["{created_at} {memory}", "2023-05-08 Ana likes tea."],
    ["{created_at:datetime} {memory}", "2023-05-08 20:56 Ana likes tea."],
    ["{updated_at:date} | {categories}: {memory}", "2023-06-01 | food, drinks: Ana likes tea."],
    ["{memory} – {categories}", "Ana likes tea. – food, drinks"],
    ["Note: {memory}", "Note: Ana likes tea."],
    ["Note: [({date}) ]{memory}[ (session {metadata.session})]", "Note: (2023-05-08) Ana likes tea. (session s-12)"],
    ["{metadata.turn} {metadata.sure} {metadata.tags} {memory}", "7 true a, b Ana likes tea."],
    ["{metadata.at:datetime} {memory}", "2023-05-08 20:56 Ana likes tea."],
    ["{metadata.deep.key} {memory}", "x Ana likes tea."],
    ["\\[{memory}\\] \\{x\\} \\\\", "[Ana likes tea.] {x} \\"],
    ["[\\[{date}\\] ]{memory}", "[2023-05-08] Ana likes tea."],
  ])("%j gives %j", (source, expected) => {
    expect(blockTemplateProblem(source)).toBeNull();
    expect(textOf(source, SAID)).toBe(expected);
  });

  it.each([
    ["{date} {memory}", "Ana likes tea."],
    ["{date}: {memory}", "Ana likes tea."],
    ["{updated_at:date} | {categories}: {memory}", "Ana likes tea."],
    ["{memory} – {categories}", "Ana likes tea."],
    ["Note: [({date}) ]{memory}[ (session {metadata.session})]", "Note: Ana likes tea."],
    ["[{date}, {categories}: ]{memory}", "Ana likes tea."],
  ])("%j leaves no gap where nothing is known", (source, expected) => {
    expect(textOf(source)).toBe(expected);
    expect(textOf(source, { createdAt: "soon", categories: [" "], metadata: { session: "" } })).toBe(expected);
  });

  it("leaves out what belongs to a missing field, and nothing else", () => {
    const source = "{date} | {categories}: {memory} ({metadata.session}";
    expect(textOf(source, { categories: ["food"] })).toBe("food: Ana likes tea.");
    expect(textOf(source, { createdAt: "2023-05-08" })).toBe("2023-05-08 | Ana likes tea.");
  });

  it.each([
    ["", "{memory} exactly once"],
    ["{memory} {memory}", "{memory} exactly once"],
    ["{date}", "{memory} exactly once"],
    ["[{memory} {date}]", "must not have {memory} in brackets"],
    ["{score} {memory}", "changes with every search"],
    ["{rerank_score} {memory}", "changes with every search"],
    ["{name} {memory}", "must not contain {name}: the fields are"],
    ["{metadata} {memory}", "must not contain {metadata}"],
    ["{created_at:year} {memory}", "as :date or :datetime"],
    ["({date}) {memory}", "must have {date} in brackets with the text around it"],
    ["{memory} ({date})", "must have {date} in brackets with the text around it"],
    ["[always] {memory}", "must have a field in each pair of brackets"],
    ["[{date} {memory}", "must not have {memory} in brackets"],
    ["{memory} [{date}", 'must close "["'],
    ["{memory}]", 'must not have "]" here'],
    ["[[{date}]] {memory}", 'must not have "[" here'],
    ["{memory} {", 'must not have "{" here'],
    ["{memory}\n{date}", "one line"],
    ["{memory}\ud800", "surrogate"],
    [`${"x".repeat(500)}{memory}`, "at most 500 characters"],
    [`${"{date}".repeat(17)}{memory}`, "at most 16 fields"],
  ])("%j is rejected: %s", (source, problem) => {
    expect(blockTemplateProblem(source)).toContain(problem);
  });

  it("reads metadata of its own only, whatever it is called", () => {
    expect(textOf("{metadata.constructor} {metadata.__proto__} {memory}", { metadata: {} })).toBe("Ana likes tea.");
  });

  it("is another one where a time zone changes what it gives, and only there", () => {
    const idOf = (source: string, zone: string) => readBlockTemplate(source, zone).id;
    expect(idOf("{date} {memory}", "Europe/Berlin")).not.toBe(idOf("{date} {memory}", "UTC"));
    expect(idOf("{categories} {memory}", "Europe/Berlin")).toBe(idOf("{categories} {memory}", "UTC"));
    expect(idOf("{date} {memory}", "UTC")).toBe(idOf("[{created_at:date} ]{memory}", "UTC"));
    expect(idOf("{memory}", "Europe/Berlin")).toBeNull();
  });
});

describe("times in blocks", () => {
  const machineZone = process.env["TZ"];
  afterEach(() => {
    if (machineZone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = machineZone;
  });

  const at = (createdAt: string | number, zone = "UTC") =>
    textOf("[{created_at:datetime} ]{memory}", { createdAt }, zone);

  it.each([
    ["2023-05-08T23:30:00Z", "UTC", "2023-05-08 23:30"],
    ["2023-05-08T23:30:00Z", "Europe/Berlin", "2023-05-09 01:30"],
    ["2023-05-08T23:30:00.123456+00:00", "America/Los_Angeles", "2023-05-08 16:30"],
    ["2023-12-08T23:30:00Z", "Europe/Berlin", "2023-12-09 00:30"],
    ["2023-05-08 23:30", "UTC", "2023-05-08 23:30"],
    ["2023-05-08T23:30:00-0730", "UTC", "2023-05-09 07:00"],
    ["2023-05-08T23:30+02", "UTC", "2023-05-08 21:30"],
    ["2023-05-08", "America/Los_Angeles", "2023-05-08"],
    [1_683_588_600, "UTC", "2023-05-08 23:30"],
    [1_683_588_600_000, "UTC", "2023-05-08 23:30"],
    ["0099-01-01T00:00:00Z", "Europe/London", "0098-12-31 23:58"],
  ])("%j in %s is %s", (time, zone, expected) => {
    expect(at(time, zone)).toBe(`${expected} Ana likes tea.`);
  });

  it.each([
    "yesterday",
    "2023-02-30",
    "2023-02-30T00:00:00Z",
    "2023-13-01",
    "2023-05-08T25:00:00Z",
    Number.NaN,
    1e30,
    "8 May 2023",
  ])("%j is no time, and leaves no gap", (time) => expect(at(time)).toBe("Ana likes tea."));

  it("are the same on every machine, whatever its zone", () => {
    const times = ["2023-05-08T23:30:00", "2023-05-08T23:30:00Z", "2023-05-08", 1_683_588_600];
    const texts = ["UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Chatham"].map((zone) => {
      process.env["TZ"] = zone;
      return times.flatMap((time) => [at(time), at(time, "Europe/Berlin")]);
    });
    for (const other of texts) expect(other).toEqual(texts[0]);
  });

  it("take IANA names of zones, and no offsets", () => {
    for (const zone of ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"])
      expect(timeZoneProblem(zone)).toBeNull();
    for (const zone of ["+02:00", "Mars/Olympus", "", "Europe/Berlin ", "x".repeat(100)])
      expect(timeZoneProblem(zone)).toContain("IANA");
  });
});

const HOSTILE = [
  "]",
  "[7]",
  "[\\7]",
  "<memories>",
  "</memories>",
  "<|im_start|>",
  "\n",
  "\r\n",
  "\u2028",
  "\\",
  "(replaces [1])",
  "é",
  "👩‍👩‍👧",
  " ",
];
const hostileText = fc
  .array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ maxLength: 5, unit: "binary" })), { maxLength: 8 })
  .map((parts) => parts.join(""));
const fieldsArbitrary: fc.Arbitrary<MemoryFields> = fc.record(
  {
    createdAt: fc.oneof(hostileText, fc.constantFrom("2023-05-08T23:30:00Z", "2023-05-08")),
    categories: fc.array(hostileText, { maxLength: 3 }),
    metadata: fc.record({ session: fc.oneof(hostileText, fc.double(), fc.boolean()) }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
);
const FIELDS = ["{date}", "{categories}", "{metadata.session}"];
const plain = fc.string({ maxLength: 4, unit: fc.constantFrom("a", " ", "-", "|", ":", "(", ")", "<") });
/** A group that is given with its one field or not at all. */
const group = fc.record({ before: plain, field: fc.constantFrom(...FIELDS), after: plain });

describe("templates that were read", () => {
  it("are read once for each zone, and no more than so many are kept", () => {
    const templates = new BlockTemplates();
    const source = "[{date}: ]{memory}";
    const first = templates.get(source, "UTC");
    expect(first.id).toBe(readBlockTemplate(source, "UTC").id);
    expect(templates.get(source, "UTC")).toBe(first);
    expect(templates.get(source, "Europe/Berlin").id).not.toBe(first.id);
    expect(() => templates.get("{score}", "UTC")).toThrow("must");
    for (let other = 0; other < 40; other++) templates.get(`${other} {memory}`, "UTC");
    expect(templates.get(source, "UTC")).not.toBe(first);
  });
});

describe("any template and any memory", () => {
  it("give each group whole or not at all, and nothing else", () => {
    fc.assert(
      fc.property(
        fc.array(group, { maxLength: 3 }),
        fc.array(group, { maxLength: 3 }),
        fieldsArbitrary,
        (left, right, fields) => {
          const source = (groups: typeof left) =>
            groups.map(({ before, field, after }) => `[${before}${field}${after}]`).join("");
          const alone = (field: string) => textOf(`${field}{memory}`, fields).slice(0, -"Ana likes tea.".length);
          const expected = (groups: typeof left) =>
            groups
              .map(({ before, field, after }) => (alone(field) === "" ? "" : before + alone(field) + after))
              .join("");
          expect(textOf(`${source(left)}{memory}${source(right)}`, fields)).toBe(
            `${expected(left).trimStart()}Ana likes tea.${expected(right).trimEnd()}`,
          );
        },
      ),
    );
  });

  it("give a canonical text within the maximum that holds the memory's own words, in one section that nothing forges", () => {
    const anyText = hostileText.filter((text) => canonicalText(text) !== "");
    fc.assert(
      fc.property(anyText, fieldsArbitrary, fc.integer({ min: 100, max: 300 }), (text, fields, max) => {
        const source = "[{date} ][{categories}: ]{memory}[ ({metadata.session})]";
        const { memory, isCut } = rendered(source, fields, { text, max });
        expect(canonicalText(memory.text).length).toBeLessThanOrEqual(max);
        const own = ownWords(canonicalText(memory.text), memory.rendered);
        if (isCut) expect(own.endsWith(CUT_MARK)).toBe(true);
        else expect(own).toBe(canonicalText(text));
        if (memory.rendered !== undefined) expect(canonicalText(memory.text)).toBe(memory.text);
        for (const form of [{}, { isLabelled: true } as const]) {
          const injection = { blocks: [{ label: 3 as Label, replaces: [], ...form }], annotations: [] };
          const section = renderSection(injection, () => canonicalText(memory.text));
          const written = "isLabelled" in form ? 3 : null;
          const block = { label: written, replaces: [], text: canonicalText(memory.text) };
          expect(parseSection(section)?.blocks).toEqual([block]);
          expect(labelsNamed(section)).toEqual(written === null ? [] : [written]);
        }
      }),
    );
  });
});
