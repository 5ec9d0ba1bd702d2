import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assemble } from "../../../src/cli/assemble.js";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { readSettings } from "../../../src/cli/settings.js";
import type { ChatMessage, ConversationId, RetrievedMemory, Scope, UserId } from "../../../src/core/index.js";
import { pickConversation, readLocomo } from "../../../src/eval/locomo/locomo-data.js";
import { comparePrefill } from "../../../src/eval/replay/prefill-comparison.js";
import { openEmbeddedMem0 } from "../../../src/memory/embedded-mem0.js";
import { composeRequest } from "../../../src/service/compose/compose-request.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { expectComplete, expectReferencesResolve, sectionsOf } from "../../core/prompt/prompt-promises.js";
import { someOf } from "../../run-length.js";
import { locomoFile, recordedData, SKIPPED } from "./recorded-searches.js";

const data = recordedData();
const locomo = data === null ? null : locomoFile(data);
const sample = fileURLToPath(new URL("../../../examples/sample-locomo.json", import.meta.url));
const reason = locomo === null ? SKIPPED : "";

interface Turn {
  readonly question: string;
  readonly answer: string;
  readonly found: ReadonlyMap<number, readonly RetrievedMemory[]>;
}

/** Loads a conversation into real embedded Mem0 and searches for every question, at each k. */
async function searchAll(file: string, id: string, ks: readonly number[], dataDir: string): Promise<Turn[]> {
  const conversation = pickConversation(readLocomo(JSON.parse(readFileSync(file, "utf8"))), id);
  const source = openEmbeddedMem0({ dataDir, threshold: 0 });
  const scope: Scope = { tenant: "default", userId: "locomo" as UserId, agentId: null };
  const { signal } = new AbortController();
  try {
    await source.add(
      scope,
      conversation.observations.map(({ text }) => ({ text })),
      signal,
    );
    const turns: Turn[] = [];
    for (const { question, answer } of conversation.questions) {
      const best = await source.search({ scope, query: question, topK: Math.max(...ks) }, signal);
      turns.push({ question, answer: answer ?? "I don't know.", found: new Map(ks.map((k) => [k, best.slice(0, k)])) });
    }
    return turns;
  } finally {
    await source.close();
  }
}

async function checkEveryTurn(memprefix: Memprefix, turns: readonly Turn[], k: number, hasLabels: boolean) {
  const history: ChatMessage[] = [];
  let before: readonly ChatMessage[] = [];
  for (const { question, answer, found } of turns) {
    const memories = found.get(k) ?? [];
    const asked: ChatMessage = { role: "user", content: question };
    const composed = await memprefix.compose(
      composeRequest({
        userId: `user-${k}${hasLabels ? "-labels" : ""}` as UserId,
        conversationId: "questions" as ConversationId,
        messages: [...history, asked],
        memories,
        // `auto` may drop long annotations again, where the next prompt is cheaper without.
        retention: "keep",
        ...(hasLabels ? { annotations: "paper" as const } : {}),
      }),
    );
    const { messages } = composed;
    expect(JSON.stringify(messages.slice(0, before.length))).toBe(JSON.stringify(before));
    expectComplete({ ...composed, memories: composed.blocks }, memories);
    expectReferencesResolve(messages);
    const blocks = sectionsOf(messages).flatMap((section) => section.blocks);
    expect(blocks.every(({ label }) => (label !== null) === hasLabels)).toBe(true);
    history.push(asked, { role: "assistant", content: answer });
    before = [...messages, { role: "assistant", content: answer }];
  }
}

const conversations = [
  { name: "the sample", file: sample, id: "sample-1", ks: [20], skipped: "" },
  { name: "LoCoMo's conv-26", file: locomo ?? "", id: "conv-26", ks: [20, 100], skipped: reason },
];
describe.each(someOf(conversations, 1))(
  "a whole conversation on real Mem0 search: $name$skipped",
  ({ file, id, ks, skipped }) => {
    const dataDir = mkdtempSync(join(tmpdir(), "memprefix-locomo-"));
    const memprefix = assemble(readSettings({ MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_SOURCE: "none" }));
    let turns: Turn[] = [];

    beforeAll(async () => {
      if (skipped === "") turns = await searchAll(file, id, ks, dataDir);
    }, 240_000);
    afterAll(async () => {
      await memprefix.close();
      rmSync(dataDir, { recursive: true, force: true });
    });

    it.skipIf(skipped !== "").each(ks)(
      "at k = %i every prompt begins with the one before, holds each retrieved text once, and resolves its references",
      async (k) => {
        expect(turns.length).toBeGreaterThan(20);
        await checkEveryTurn(memprefix, turns, k, false);
        await checkEveryTurn(memprefix, turns, k, true);
      },
      240_000,
    );

    it.skipIf(skipped !== "")(
      "leaves few tokens to prefill, next to the prompt that Mem0's README builds",
      async () => {
        const questions = turns.map(({ question, answer, found }) => ({
          question,
          answer,
          memories: found.get(20) ?? [],
        }));
        const costs = await comparePrefill(memprefix, questions, encodeO200k);
        const prefill = (layout: string, builder: string) =>
          costs.find((cost) => cost.layout === layout && cost.builder === builder)?.prefillTokens ?? Number.NaN;
        // A tenth in 199 turns, what the issue asks for; the sample's 30 turns are too few to spread the first ones' memories over.
        const bound = id === "conv-26" ? 0.1 : 0.2;
        expect(prefill("conversation", "memprefix, keep")).toBeLessThanOrEqual(
          bound * prefill("conversation", "mem0-readme"),
        );
        expect(prefill("single", "memprefix")).toBeLessThan(prefill("single", "mem0-readme"));
      },
      240_000,
    );
  },
);
