import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assemble } from "../../../src/cli/assemble.js";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { readSettings } from "../../../src/cli/settings.js";
import {
  type ChatMessage,
  type ConversationId,
  canonicalText,
  escapeText,
  messageText,
  parseSection,
  type RetrievedMemory,
  type Scope,
  sectionAtStart,
  type UserId,
} from "../../../src/core/index.js";
import { pickConversation, readLocomo } from "../../../src/eval/locomo/locomo-data.js";
import { comparePrefill } from "../../../src/eval/replay/prefill-comparison.js";
import { openEmbeddedMem0 } from "../../../src/memory/embedded-mem0.js";
import { composeRequest } from "../../../src/service/compose/compose-request.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
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

/** What a strict reader sees in a prompt: each block's label and text, and every line that names what does not stand there. */
function readPrompt(messages: readonly ChatMessage[]) {
  const labels: (number | null)[] = [];
  const texts: string[] = [];
  const unresolved: string[] = [];
  for (const message of messages) {
    const section = sectionAtStart(messageText(message));
    const parsed = section === null ? null : parseSection(section);
    for (const { label, text, replaces } of parsed?.blocks ?? []) {
      if (replaces.some((old) => !labels.includes(old))) unresolved.push(text);
      labels.push(label);
      texts.push(text);
    }
    for (const line of parsed?.annotations ?? []) {
      const [, quoted] = /^(?:Most relevant|Current again|No longer true): (.+)$/s.exec(line) ?? [];
      const isOf = (text: string) =>
        escapeText(text) === quoted || (quoted?.endsWith("…") && escapeText(text).startsWith(quoted.slice(0, -1)));
      const named = [...line.matchAll(/\[(\d+)\]/g)].map((match) => Number(match[1]));
      const isResolved = labels.includes(null)
        ? texts.some(isOf)
        : named.length > 0 && named.every((label) => labels.includes(label));
      if (!isResolved) unresolved.push(line);
    }
  }
  return { labels, texts, unresolved };
}

async function checkEveryTurn(memprefix: Memprefix, turns: readonly Turn[], k: number, hasLabels: boolean) {
  const history: ChatMessage[] = [];
  let before: readonly ChatMessage[] = [];
  const textOf = new Map<number, string>();
  for (const { question, answer, found } of turns) {
    const memories = found.get(k) ?? [];
    const asked: ChatMessage = { role: "user", content: question };
    const { messages, blocks } = await memprefix.compose(
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
    expect(JSON.stringify(messages.slice(0, before.length))).toBe(JSON.stringify(before));
    const { labels, texts, unresolved } = readPrompt(messages);
    for (const { id, text } of memories) {
      const canonical = canonicalText(text);
      expect(
        texts.filter((one) => one === canonical),
        `memory ${id}`,
      ).toHaveLength(1);
      const label = blocks.find((block) => block.memoryId === id)?.label ?? 0;
      expect(textOf.get(label) ?? canonical, `label ${label}`).toBe(canonical);
      textOf.set(label, canonical);
      expect(labels[texts.indexOf(canonical)]).toBe(hasLabels ? label : null);
    }
    expect(textOf.has(0)).toBe(false);
    expect(new Set(textOf.values()).size).toBe(textOf.size);
    expect(new Set(texts).size).toBe(texts.length);
    expect(unresolved).toEqual([]);
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
        const costs = await comparePrefill(memprefix, questions, encodeO200k, (arm) => `prefill-${arm}` as UserId);
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
