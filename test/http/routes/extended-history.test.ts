import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";

const TURNS = 40;
const WINDOW = 6;
const facts = (turn: number) =>
  [0, 1, 2].map((n) => ({ id: `m${turn + n}`, memory: `Ada's fact number ${turn + n}.` }));
const system = { role: "system", content: "Be kind." };

/** What a client with a window sends at each turn: its instructions, and its last messages, the new question last. */
function* windows(turns = TURNS) {
  const said: { role: string; content: string }[] = [];
  for (let turn = 0; turn < turns; turn++) {
    said.push({ role: "user", content: `Question ${turn}: what is to be done about it, and by whom?` });
    yield { turn, messages: [system, ...said.slice(-WINDOW)], cut: Math.max(0, said.length - WINDOW) };
    said.push({ role: "assistant", content: `Answer ${turn}: it is done by those who know how.` });
  }
}

describe("a client that cuts its history", () => {
  const app = servedApp();
  const prompts = async (settings: object) => {
    const composed = [];
    for (const { turn, messages, cut } of windows()) {
      const body = { user_id: "ada", conversation_id: JSON.stringify(settings), messages, memories: facts(turn) };
      composed.push({ cut, sent: messages, ...(await app.compose({ ...body, ...settings })) });
    }
    return composed;
  };

  it("gets prompts that continue each other, at most so long on average, and every memory that it asks for", async () => {
    const exact = await prompts({ history: "exact" });
    for (const ratio of [1.5, 2, 3]) {
      const extended = await prompts({ history: "extended", history_ratio: ratio });
      let epochs = 1;
      for (const [turn, { messages, plan, sent, blocks, cut }] of extended.entries()) {
        const before = extended[turn - 1]?.messages ?? [];
        const isContinued = before.every((message, at) => JSON.stringify(messages[at]) === JSON.stringify(message));
        if (!isContinued) epochs++;
        const hasOwnHead = messages[1]?.content?.toString().endsWith("</memories>") ?? false;
        const added = isContinued ? messages.length - sent.length - Number(hasOwnHead) : 0;
        expect(plan.added_messages ?? 0).toBe(added);
        expect(plan.epoch?.began ?? null).toBe(isContinued ? null : "ratio");
        expect(plan.added_messages ?? 0).toBeLessThanOrEqual(cut);
        const text = JSON.stringify(messages);
        for (const { memory } of facts(turn)) expect(text).toContain(memory);
        expect(blocks.map(({ memory_id }) => memory_id).sort()).toEqual(
          facts(turn)
            .map(({ id }) => id)
            .sort(),
        );
        expect(messages.at(-1)?.role).toBe("user");
        expect(messages.filter(({ role }) => role === "system")).toEqual([system]);
      }
      const total = (each: typeof exact) => each.reduce((sum, { plan }) => sum + plan.total_tokens, 0);
      const uncached = (each: typeof exact) => each.reduce((sum, { plan }) => sum + plan.uncached_tokens, 0);
      expect(total(extended)).toBeLessThanOrEqual(ratio * total(exact));
      expect(epochs).toBeGreaterThan(1);
      expect(epochs).toBeLessThan(TURNS / 2);
      expect(uncached(extended)).toBeLessThan(0.8 * uncached(exact));
    }
  });

  it("never gets a prompt past max_prompt_tokens: the next epoch begins before", async () => {
    const extended = await prompts({ history: "extended", history_ratio: 50, max_prompt_tokens: 600 });
    expect(Math.max(...extended.map(({ plan }) => plan.total_tokens))).toBeLessThanOrEqual(600);
    expect(extended.flatMap(({ warnings }) => warnings).filter(({ code }) => code === "memory_left_out")).toEqual([]);
    const starts = extended.filter(({ plan, cut }) => cut > 0 && plan.added_messages === undefined);
    expect(starts.length).toBeGreaterThan(1);
    expect(starts.length).toBeLessThan(TURNS / 4);
  });

  it("continues the epoch with a question that is asked again, or edited", async () => {
    const body = { user_id: "ada", conversation_id: "again", history: "extended" };
    let last: Awaited<ReturnType<typeof app.compose>> | null = null;
    let messages: readonly { role: string; content: string }[] = [];
    for (const each of windows(6)) {
      messages = each.messages;
      last = await app.compose({ ...body, messages, memories: facts(each.turn) });
    }
    expect(last?.plan.added_messages).toBeGreaterThan(0);
    const again = await app.compose({ ...body, messages, memories: facts(5) });
    expect(again.messages).toEqual(last?.messages);
    const edited = [...messages.slice(0, -1), { role: "user", content: "Another question?" }];
    const other = await app.compose({ ...body, messages: edited, memories: facts(5) });
    expect(other.plan.added_messages).toBe(last?.plan.added_messages);
    expect(other.messages.slice(0, -1)).toEqual(last?.messages.slice(0, -1));
  });
});
