import { describe, expect, it } from "vitest";
import { openMeasuredMemprefix } from "../../../src/cli/assemble.js";
import { countO200k } from "../../../src/cli/o200k.js";
import {
  DEFAULT_ENGINE_MODEL,
  ENGINE_MODELS,
  messageText,
  parseSection,
  sectionAtStart,
} from "../../../src/core/index.js";
import { MemoryList } from "../../../src/eval/base/prompt-memories.js";
import type { ArmAnnotations, EvalArm } from "../../../src/eval/base/run-record.js";
import { type ArmPrompt, composedPrompts } from "../../../src/eval/run/arm-prompts.js";
import { EXACT_ARM } from "./run-fixture.js";

const list = new MemoryList(
  ["Ana likes tea", "Ana has a dog", "Ana paints", "Ana sails"].map((text) => ({ text, evidence: [] })),
  countO200k,
);
/** What each question finds: the second and third in another order than the first, the third with what stands already. */
const FOUND = [
  [0, 1],
  [2, 1, 0],
  [1, 3],
];

async function promptsOf(arm: Partial<EvalArm>, promptTokens: number | null = null): Promise<ArmPrompt[]> {
  const builder = composedPrompts(list, {
    openMemprefix: (now) => openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], now),
    arm: { ...EXACT_ARM, ...arm },
    budgetRatio: null,
    policy: "prefix-exact",
    family: "generic",
    mark: null,
    promptTokens,
    chooseDepth: null,
  });
  const prompts: ArmPrompt[] = [];
  const history: { role: string; content: string }[] = [];
  for (const [turn, retrieved] of FOUND.entries()) {
    const question = `Question ${turn}?`;
    const sent = arm.layout === "conversation" ? [...history] : [];
    prompts.push(await builder.build({ turn, question, history: sent, retrieved, evidence: [] }));
    history.push({ role: "user", content: question }, { role: "assistant", content: "Yes." });
  }
  await builder.close();
  return prompts;
}

const textsOf = ({ messages }: ArmPrompt) => messages.map(messageText);
/** The annotations of the newest section, wherever it stands. */
function annotationsIn(prompt: ArmPrompt | undefined): readonly string[] {
  const texts = prompt === undefined ? [] : textsOf(prompt);
  const at = texts.findLastIndex((text) => text.includes("<memories>"));
  const text = texts[at] ?? "";
  return parseSection(sectionAtStart(text.slice(text.indexOf("<memories>"))) ?? "")?.annotations ?? [];
}

describe("an engine's limit", () => {
  it("is kept as the service keeps it, and what was cut is counted", async () => {
    const prompts = await promptsOf({ layout: "conversation", retention: "keep" }, 55);
    const sizes = prompts.map((prompt) => textsOf(prompt).reduce((sum, text) => sum + countO200k(text), 0));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(55);
    expect(
      prompts.map(({ figures: { memoriesCut, messagesCut, isFreshStart } }) => [
        memoriesCut,
        messagesCut,
        isFreshStart,
      ]),
    ).toEqual([
      [0, 0, false],
      [1, 2, true],
      [0, 4, true],
    ]);
  });
});

describe("annotations", () => {
  const kept = { layout: "conversation", retention: "keep" } as const;

  it("are those of the arm", async () => {
    const said = async (annotations: ArmAnnotations | null) =>
      (await promptsOf({ ...kept, annotations })).map((prompt) => annotationsIn(prompt));
    expect(await said("none")).toEqual([[], [], []]);
    expect((await said(null))[2]).toEqual(["Most relevant: Ana has a dog"]);
    const single = await promptsOf({ annotations: "paper" });
    expect(annotationsIn(single[1])).toEqual([
      "Please read the context in the following priority order: [Doc_3] > [Doc_2] > [Doc_1] and answer the question.",
    ]);
  });

  it("are the paper's word for word: each duplicate is referred to, also in what is replayed", async () => {
    const prompts = await promptsOf({ ...kept, annotations: "paper" });
    const [first, second, third] = prompts.map(textsOf);
    expect(second?.[3]).toBe(
      [
        "<memories>",
        "[Doc_3] Ana paints",
        "Please refer to [Doc_2] in the previous conversation.",
        "Please refer to [Doc_1] in the previous conversation.",
        "</memories>",
        "\nQuestion 1?",
      ].join("\n"),
    );
    expect(third?.slice(0, 4)).toEqual(second);
    expect(second?.slice(0, 2)).toEqual(first);
    expect(third?.at(-1)).toBe(
      "<memories>\nPlease refer to [Doc_2] in the previous conversation.\n[Doc_4] Ana sails\n</memories>\n\nQuestion 2?",
    );
  });
});
