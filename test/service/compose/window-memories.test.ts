import { describe, expect, it } from "vitest";
import type { Annotations, ChatMessage, HistoryName } from "../../../src/core/index.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import { LABELLED } from "../../core/compose/scope-fixture.js";
import { sectionsOf } from "../../core/prompt/prompt-promises.js";
import { composeWith, memories, openService } from "./service-fixture.js";

/** The answers to a client that sends the last four messages, of a user who moves at one of its turns. */
async function windows(history: HistoryName, annotationsAt: (turn: number) => Annotations | undefined, movesAt = 4) {
  const service = openService();
  // Else it costs less to give memories again than to refer to them.
  const more = annotationsAt(0) === "paper" ? ", under the maps and the letters that her aunt sent from the coast" : "";
  const said: ChatMessage[] = [];
  const answers: ComposeAnswer[] = [];
  for (let turn = 0; turn < 8; turn++) {
    const things = [1, 2, 3, 4, 5].map((n) => [`m${n}`, `Ada's thing ${n} is in drawer ${n}${more}.`]);
    const home = turn < movesAt ? "Ada lives in Oslo." : "Ada lives in Rome.";
    const texts = Object.fromEntries([["home", home], ...things]);
    said.push({ role: "user", content: `Question ${turn}?` });
    const messages = [{ role: "system", content: "Be brief." }, ...said.slice(-4)];
    const annotations = annotationsAt(turn);
    const to = { userId: "ada", conversationId: "c", history, messages, memories: memories(texts) };
    answers.push(await composeWith(service, { ...to, ...(annotations === undefined ? {} : { annotations }) }));
    said.push({ role: "assistant", content: `Answer ${turn}.` });
  }
  await service.close();
  return answers;
}

describe("the memories of a client that sends windows", () => {
  it.each([
    ["as a list", (): Annotations | undefined => undefined],
    ["with labels", (): Annotations | undefined => LABELLED.annotations],
  ] as const)(
    "stand once, in front of an epoch and behind it, %s, with lines that name what stands there",
    async (form, annotationsAt) => {
      const began = new Set<string | null>();
      const said: string[] = [];
      for (const history of ["auto", "exact"] as const) {
        for (const { messages, plan, annotations, blocks } of await windows(history, annotationsAt)) {
          began.add(plan.epoch?.began ?? null);
          const sections = sectionsOf(messages);
          const stood = sections.flatMap(({ blocks, updates }) => [...blocks, ...updates]);
          expect(new Set(stood.map(({ label }) => label !== null))).toEqual(new Set([form === "with labels"]));
          expect(new Set(stood.map(({ text }) => text)).size).toBe(stood.length);
          const texts = new Set(stood.map(({ text }) => text));
          said.push(...annotations);
          for (const line of annotations) {
            if (form === "with labels") expect(line).toMatch(/\[Doc_\d+\]/);
            else expect(texts).toContain(/^(?:Most relevant|Update): (.+)$/.exec(line)?.[1]);
          }
          expect(blocks.length).toBeGreaterThanOrEqual(6);
        }
      }
      expect(began).toContain("window");
      if (form === "as a list") expect(said).toContain("Update: Ada lives in Rome.");
      else expect(said.join()).toContain("Please refer to [");
    },
  );
});
