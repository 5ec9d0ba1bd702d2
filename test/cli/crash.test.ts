import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, vi } from "vitest";
import { parseSection, sectionAtStart } from "../../src/core/rendering.js";
import { composeResult } from "../../src/http/contracts.js";
import { commands } from "./memstem-process.js";
import { seededNumbers } from "./seeded-numbers.js";

const ROUNDS = 10;
const SEED = 20_260_101;

interface Message {
  readonly role: string;
  readonly content: string;
}

type Body = Readonly<Record<string, unknown>> & { readonly request_id: string };

/** The service's answers, of which it may have lost none: each request with the bytes that came back. */
class Answers {
  readonly bytes = new Map<string, { readonly body: Body; readonly text: string }>();
  arrived = 0;

  /** Sends a request; false where the service died before the answer was there. */
  async ask(address: string, body: Body): Promise<boolean> {
    try {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${address}/compose`, { method: "POST", body: JSON.stringify(body), headers });
      const text = await answer.text();
      expect(answer.status, text).toBe(200);
      this.bytes.set(body.request_id, { body, text });
      this.arrived += 1;
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false;
      throw error;
    }
  }

  messagesOf(requestId: string): readonly unknown[] {
    return composeResult.parse(JSON.parse(this.bytes.get(requestId)?.text ?? "null")).messages;
  }

  /** Every text that stood behind a label in any answer to a user. */
  textsByLabel(user: string): Map<number, Set<string>> {
    const texts = new Map<number, Set<string>>();
    for (const { body, text } of this.bytes.values()) {
      if (body["user_id"] !== user) continue;
      for (const { content } of composeResult.parse(JSON.parse(text)).messages) {
        const section = typeof content === "string" ? sectionAtStart(content) : null;
        for (const block of (section === null ? null : parseSection(section))?.blocks ?? []) {
          texts.set(block.label, (texts.get(block.label) ?? new Set()).add(block.text));
        }
      }
    }
    return texts;
  }
}

describe("memstem serve, killed at any moment", () => {
  const memstem = commands();
  const random = seededNumbers(SEED);
  const pick = (count: number) => Math.floor(random() * count);
  const answers = new Answers();

  /** What a search might find: some of thirty memories, of which some have changed. */
  function found() {
    const memories = new Map<string, string>();
    for (let at = 0; at < 6; at++) {
      const id = pick(30);
      memories.set(`m-${id}`, `Ada's fact ${id} as of ${pick(10) === 0 ? pick(3) : 0}\nwith a [${id}] in it`);
    }
    return [...memories].map(([id, memory]) => ({ id, memory }));
  }

  const history: Message[] = [{ role: "user", content: "Question 0" }];
  const prompts: string[] = [];
  let turn: Body | undefined;

  /** Asks one question of the conversation after the other. One that got no answer is asked again, as a client does. */
  async function converse(address: string): Promise<void> {
    for (;;) {
      const id = `turn-${prompts.length}`;
      turn ??= { user_id: "ada", conversation_id: "c", request_id: id, messages: [...history], memories: found() };
      if (!(await answers.ask(address, turn))) return;
      prompts.push(id);
      turn = undefined;
      history.push({ role: "assistant", content: `Answer ${prompts.length}` });
      history.push({ role: "user", content: `Question ${prompts.length}` });
    }
  }

  let singles = 0;
  /** Single prompts side by side with the conversation, by the same user or another. */
  async function askSingly(address: string, user: string): Promise<void> {
    const body = () => ({ user_id: user, request_id: `${user}-${singles++}`, query: "Well?", memories: found() });
    while (await answers.ask(address, body()));
  }

  it("has every answer, begins every turn with the bytes of the one before, and gives no label twice", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const service = await memstem.serve({ MEMSTEM_LOG_LEVEL: "silent" });
      for (const { body, text } of [...answers.bytes.values()]) {
        expect(await answers.ask(service.address, body)).toBe(true);
        expect(answers.bytes.get(body.request_id)?.text === text, `${body.request_id} in round ${round}`).toBe(true);
      }
      const asking = [converse(service.address), askSingly(service.address, "ada"), askSingly(service.address, "bob")];
      const enough = answers.arrived + 3 + pick(20);
      await vi.waitUntil(() => answers.arrived >= enough, { interval: 1, timeout: 20_000 });
      await new Promise((resolve) => setTimeout(resolve, pick(12)));
      service.kill("SIGKILL");
      expect(await service.ended).toMatchObject({ signal: "SIGKILL", stderr: "" });
      await Promise.all(asking);
    }

    expect(answers.bytes.size).toBeGreaterThan(prompts.length + ROUNDS);
    expect(prompts.length).toBeGreaterThan(ROUNDS);
    for (const [at, id] of prompts.entries()) {
      if (at === 0) continue;
      const begin = [...answers.messagesOf(prompts[at - 1] ?? ""), { role: "assistant", content: `Answer ${at}` }];
      const messages = answers.messagesOf(id);
      expect(JSON.stringify(messages.slice(0, begin.length)) === JSON.stringify(begin), id).toBe(true);
      expect(messages).toHaveLength(begin.length + 1);
    }
    for (const user of ["ada", "bob"]) {
      const texts = answers.textsByLabel(user);
      expect(texts.size).toBeGreaterThan(10);
      expect([...texts.values()].filter((ofLabel) => ofLabel.size > 1)).toEqual([]);
      expect(new Set([...texts.values()].flatMap((ofLabel) => [...ofLabel])).size).toBe(texts.size);
    }
    const database = new Database(join(memstem.dataDir, "memstem.db"), { readonly: true });
    expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
    expect(database.pragma("foreign_key_check")).toEqual([]);
    database.close();
  }, 180_000);
});
