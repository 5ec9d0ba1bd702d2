import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { countO200k } from "../../../src/cli/o200k.js";
import type { UserId } from "../../../src/core/index.js";
import { checkDatabase } from "../../../src/store/check/check-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { journalIn } from "../../../src/store/sqlite/open-journal.js";
import { openJournalDatabase } from "../../../src/store/upgrade/upgrade-to-journal.js";
import { KeptConversation, type KeptExchange, type Message, opened, said } from "./kept-conversation.js";

/** Three turns and two single prompts, as the code stored them whose blocks began with a label in brackets (schema 0013). */
const kept = new KeptConversation("labels_in_brackets");
const { exchanges } = kept;
afterAll(() => kept.dispose());

const turns = exchanges.slice(0, 3);
const singles = exchanges.slice(3);
const last = turns.at(-1);
const then = JSON.parse(last?.answer ?? "") as {
  readonly messages: readonly Message[];
  readonly plan: { readonly total_tokens: number };
};
const sent = then.messages;
const history = last?.body.messages ?? [];
const turnOf = (turn: number, memories: readonly object[], before = history) => ({
  ...{ user_id: "ada", conversation_id: "tea", request_id: `turn-${turn}` },
  ...{ messages: said(turn, before), memories },
});

describe("a conversation whose first blocks began with a label in brackets", () => {
  it("goes on byte for byte, and gives what is new with a bare one", async () => {
    const dataDir = kept.keptThen();
    const memstem = opened(dataDir);
    for (const { body, answer } of exchanges)
      expect((await memstem.ask(body)).messages).toEqual(JSON.parse(answer).messages);
    const fourth = await memstem.ask(turnOf(4, [{ id: "m-9", memory: "Ada counts\n4 pears" }]));
    expect(JSON.stringify(fourth.messages.slice(0, sent.length))).toBe(JSON.stringify(sent));
    expect(fourth.messages.at(-1)?.content).toContain("<memories>\n6 Ada counts\n  \\4 pears\n");
    // All of what was sent is expected to be cached.
    expect(fourth.plan.expected_cached_tokens).toBeGreaterThanOrEqual(then.plan.total_tokens);
    await memstem.close();
    expect(checkDatabase(join(dataDir, "memstem.db"))).toMatchObject({ findings: [] });

    const again = opened(dataDir);
    const fifth = await again.ask(turnOf(5, [], said(4, history)));
    expect(JSON.stringify(fifth.messages.slice(0, fourth.messages.length))).toBe(JSON.stringify(fourth.messages));
    expect(fifth.plan.expected_cached_tokens).toBeGreaterThanOrEqual(fourth.plan.total_tokens);
    await again.close();
  });

  it("still goes on so where a memory of it was forgotten", async () => {
    const dataDir = kept.keptThen();
    const memstem = opened(dataDir);
    await memstem.forget("m-2");
    const { messages } = await memstem.ask(turnOf(4, []));
    expect(messages[1]?.content).toContain("<memories>\n[1] Ada says [\\BOS] and [\\12]\n[3] Ada drinks tea\n");
    await memstem.close();
    const again = opened(dataDir);
    expect((await again.ask(turnOf(4, []))).messages).toEqual(messages);
    await again.close();
  });
});

describe("single prompts", () => {
  it("hit nothing of blocks in another form, and are counted as they are written", async () => {
    const dataDir = kept.keptThen();
    const memstem = opened(dataDir);
    const { body } = singles.at(-1) as KeptExchange;
    const first = await memstem.ask({ ...body, request_id: "single-3" });
    expect(first.messages.at(-1)?.content).toContain("<memories>\n3 Ada drinks tea\n");
    const [instructions] = body.messages as readonly Message[];
    expect(first.plan.expected_cached_tokens).toBeLessThanOrEqual(countO200k(String(instructions?.content)) + 4);
    const second = await memstem.ask({ ...body, request_id: "single-4" });
    expect(second.plan.expected_cached_tokens).toBeGreaterThan(first.plan.expected_cached_tokens + 4);
    await memstem.close();
    const store = new JournalStore(journalIn(openJournalDatabase(join(dataDir, "memstem.db"))));
    const { scope } = await store.loadScope({ tenant: "default", userId: "ada" as UserId, agentId: null });
    await store.close();
    const counted = scope.register.blocks.filter(({ text }) => !/[[<\n]/.test(text));
    expect(counted.length).toBeGreaterThan(2);
    for (const { label, text, tokens } of counted) expect(tokens).toBe(countO200k(`${label} ${text}\n`));
  });
});
