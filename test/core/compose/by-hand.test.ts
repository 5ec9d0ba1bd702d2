import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { inLastMessage, readmeMessages } from "../../../src/eval/base/hand-built.js";
import { assistant, memories, system, UserScope, user } from "./scope-fixture.js";

/** Four characters are a token; a message's frame is left out. */
const rendered = (messages: readonly ChatMessage[]) =>
  messages.map(({ role, content }) => `${role}:${content}`).join("\n");

/** Tokens that an endless cache would compute of each prompt in turn. */
function computed(prompts: readonly string[]): number[] {
  return prompts.map((prompt, at) => {
    const shared = prompts.slice(0, at).map((before) => [...before].findIndex((letter, n) => letter !== prompt[n]));
    return (prompt.length - Math.max(0, ...shared)) / 4;
  });
}

describe("what a prompt would have cost by hand", () => {
  const instructions = "You are a helpful assistant. Answer the question from what you remember about the user.";
  const names = ["home", "job", "dog", "tea", "car", "sport", "song", "city", "hat", "book"];
  const turns = Array.from({ length: 8 }, (_, turn) => ({
    question: `Question ${turn}: what do you know of my life in year ${1_990 + turn}?`,
    answer: `Answer ${turn}, which is a sentence of some length so that it counts for something.`,
    found: memories(...names.filter((_, at) => (at * 7 + turn * 3) % 10 < 6)),
  }));

  it.each(["keep", "ephemeral"] as const)(
    "is what the same lists cost in a real history, with retention %s",
    (retention) => {
      const scope = new UserScope();
      const history: ChatMessage[] = [];
      const byHand = { inMessage: [] as string[], inSystem: [] as string[] };
      const said = turns.map(({ question, answer, found }) => {
        const asked = [...history, user(question)];
        byHand.inMessage.push(rendered(inLastMessage(found, asked)));
        byHand.inSystem.push(rendered(readmeMessages(found, asked)));
        const composition = scope.compose([system(instructions), ...asked], found, { conversation: "c", retention });
        history.push(user(question), assistant(answer));
        return composition;
      });
      for (const way of ["inMessage", "inSystem"] as const) {
        const real = computed(byHand[way]);
        for (const [at, { byHand: told, plan }] of said.entries()) {
          // Of messages that are computed: all of the history, or the newest exchange.
          const messages = way === "inSystem" ? 2 * at + 2 : 2;
          expect(Math.abs((told?.[way] ?? 0) - (real[at] ?? 0)), `${way} ${at}`).toBeLessThan(5 * messages);
          if (retention === "keep" && at > 0) expect(plan.uncachedTokens).toBeLessThan(told?.[way] ?? 0);
        }
      }
    },
  );

  it("is the whole prompt where the engine has lost what was sent", () => {
    const scope = new UserScope();
    const [first, second] = turns;
    if (first === undefined || second === undefined) return expect.unreachable();
    const compose = (head: string, asked: readonly ChatMessage[], found: typeof first.found) =>
      scope.compose([system(head), ...asked], found, { conversation: "c" }).byHand;
    const whole = compose(instructions, [user(first.question)], first.found);
    expect(whole?.inMessage).toBe(whole?.inSystem);
    const asked = [user(first.question), assistant(first.answer), user(second.question)];
    const changed = compose(`${instructions} Be brief.`, asked, second.found);
    expect(changed?.inMessage).toBe(changed?.inSystem);
  });
});
