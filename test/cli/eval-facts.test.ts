import { describe, expect, it } from "vitest";
import { z } from "zod";
import { messageText } from "../../src/core/text/message.js";
import { FACT_CASES } from "../../src/eval/facts/fact-cases.js";
import { openAiEngine, type Received, sendJson } from "../http/routes/openai-engine.js";
import { commands } from "./memprefix-command.js";

const scored = z.object({
  prompt: z.tuple([z.int(), z.int()], z.int()),
  max_tokens: z.literal(1),
  allowed_token_ids: z.tuple([z.int()]),
});
/** Tokens that every answer begins and ends with, and the first of those that tell answers apart. */
const [BEGIN, END, ANSWERS] = [500_001, 500_002, 1_000_000];

describe("memprefix eval facts", () => {
  const memprefix = commands();
  const engine = openAiEngine();
  const run = (...more: string[]) =>
    memprefix.run(["eval", "facts", "--engine", engine.url, "--model", "stub", "--limit", "4", ...more]);

  /** An answer is e times as likely for each time that its sentence is in the prompt. Fails from a chat on. */
  function behave(failsFrom = Number.POSITIVE_INFINITY) {
    const chats: Received["body"]["messages"][] = [];
    const answers: string[] = [];
    const prompts: (readonly number[])[] = [];
    engine.behave(({ url, body, raw }, response) => {
      const { prompt } = z.looseObject({ prompt: z.unknown().optional() }).parse(JSON.parse(raw));
      if (url.endsWith("/tokenize")) {
        if (typeof prompt !== "string") return sendJson(response, 200, { tokens: [chats.push(body.messages) - 1] });
        return sendJson(response, 200, { tokens: [BEGIN, ANSWERS + answers.push(prompt) - 1, END] });
      }
      const { prompt: tokens, allowed_token_ids: allowed } = scored.parse(JSON.parse(raw));
      prompts.push(tokens);
      const [chat] = tokens;
      if (chat >= failsFrom) return sendJson(response, 500, { error: { message: "out of memory" } });
      const said = (chats[chat] ?? []).map(messageText).join("\n");
      const times = said.split(answers[allowed[0] - ANSWERS] ?? said).length - 1;
      const logprobs = { token_logprobs: [allowed[0] === END ? -0.5 : times - 10] };
      return sendJson(response, 200, { choices: [{ logprobs }] });
    });
    return { chats, answers, prompts };
  }

  it("has cases whose values differ, each among 18 other memories", () => {
    expect(FACT_CASES).toHaveLength(120);
    for (const { answers, old, new: now, false: claim, others } of FACT_CASES) {
      expect(answers.old).not.toBe(answers.new);
      expect(new Set([old, now, ...others]).size).toBe(20);
      expect(claim).toBe(old);
      expect(`${old} ${now} ${others.join(" ")}`).not.toMatch(/[{}]|undefined/);
    }
  });

  it("says which value is preferred after each prompt, and what a line makes of a false one", async () => {
    const { chats, answers, prompts } = behave();
    const { code, stdout } = await run();
    expect(code).toBe(0);
    const rows = stdout.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
    const rowOf = (name: string) => rows.find((cells) => cells[1] === name)?.slice(2, -1);
    expect(rowOf("`No longer true: <old>`")?.slice(0, 3)).toEqual(["4", "0 %", "−1.00 (−1.00 to −1.00)"]);
    expect(rowOf("as memprefix sends it")?.slice(2, 3)).toEqual(["+0.00 (+0.00 to +0.00)"]);
    expect(rowOf("no old text")?.slice(0, 3)).toEqual(["4", "100 %", "+1.00 (+1.00 to +1.00)"]);
    expect(rowOf("repeated by the line")).toEqual(["once", "2", "× 2.72", "2.72 to 2.72"]);
    expect(rowOf("kept, and repeated by the line")).toEqual(["kept", "2", "× 2.72", "2.72 to 2.72"]);
    expect(rowOf("kept, of an untrusted origin")).toEqual(["kept", "2", "× 1.00", "1.00 to 1.00"]);
    const { old = "", new: now = "", others = [], question } = FACT_CASES[0] ?? {};
    // Of each prompt and answer, one request for each token from the first that differs.
    expect([chats.length, answers.length, prompts.length]).toEqual([4 * 6 + 2 * 8, 8, 4 * chats.length]);
    expect(prompts.slice(0, 4)).toEqual([
      [0, BEGIN],
      ...[
        [0, BEGIN, ANSWERS],
        [0, BEGIN],
        [0, BEGIN, ANSWERS + 1],
      ],
    ]);
    const sent = chats.map((messages) => messageText(messages.at(-1) ?? { role: "user", content: "" }));
    expect(sent).toContain(`<memories>\n- ${others.at(-1)}\n</memories>\nUpdate: ${now}\n\n${question}`);
    expect(sent).toContain(
      `<memories>\n- ${now}\n- ${others.at(-1)}\n</memories>\nNo longer true: ${old}\n\n${question}`,
    );
  });

  it("prints and keeps what was measured before the engine failed, and goes on from there", async () => {
    const out = `${memprefix.home}/rows.jsonl`;
    behave(20);
    const { code, stdout, stderr } = await run("--out", out);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("out of memory") });
    expect(stdout).toMatch(/no old text +\| +2 \| +100 %/);
    const { chats } = behave();
    expect((await run("--out", out)).stdout).toBe((await run()).stdout);
    expect(chats).toHaveLength(6 + 8 + 6 + 4 * 6 + 2 * 8);
    expect((await run("--out", out, "--limit", "2")).stdout).toMatch(/no old text +\| +2 \| /);
    const others = await run("--out", out, "--model", "another");
    expect(others).toMatchObject({ code: 1, stderr: expect.stringMatching(/rows\.jsonl, line 1: model: /) });
  });

  it("says what is wrong with an engine that gives no log-probabilities, or with its address", async () => {
    engine.behave((_request, response) => sendJson(response, 404, { error: { message: "no such route" } }));
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining("no such route") });
    const nowhere = await run("--out", `${memprefix.home}/none/rows.jsonl`);
    expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringMatching(/^memprefix: cannot write .*: ENOENT/) });
    expect(await run("--engine", "here")).toMatchObject({ code: 2, stderr: expect.stringContaining("--engine") });
  });
});
