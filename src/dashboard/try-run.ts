import type { ComposeOptions } from "../client/index.js";
import { service } from "./service.js";
import { type ChatLine, searched, type TryInput, type TryMemory } from "./try-input.js";

/*
 * Composes a history several ways through the public HTTP API. Each way has a made-up user, which is deleted after the run, also where the
 * page is left, and counts in no figures.
 */

export interface Way {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  /** Absent: not through memprefix; memories go into the instructions, as in Mem0's README. */
  readonly retention?: ComposeOptions["retention"];
}

/** What most people have, then each retention. */
const WAYS: readonly Way[] = [
  { id: "instructions", name: "Memories in the system prompt", note: "as in Mem0's README: what most agents do" },
  { id: "keep", name: "keep", note: "all earlier memories stay: the prompt only grows", retention: "keep" },
  { id: "volatile", name: "volatile", note: "memories stay, annotations go", retention: "volatile" },
  { id: "ephemeral", name: "ephemeral", note: "memories in the newest message only", retention: "ephemeral" },
  { id: "auto", name: "auto", note: "the cheapest by the engine's cost model", retention: "auto" },
];

/** The part of a compose answer that is shown. */
export interface TriedPrompt {
  readonly messages: readonly ChatLine[];
  readonly total: number;
  readonly expectedCached: number;
  /** The longest prefix shared with an earlier prompt of the same way. */
  readonly shared: TriedPrefix;
}

/** Where a prompt first differs from the earlier one that it shares most with. */
export interface TriedPrefix {
  readonly messages: number;
  /** Of the first message that differs. */
  readonly characters: number;
}

/** A way's prompts, one for each question. */
export interface TriedWay {
  readonly way: Way;
  readonly prompts: readonly TriedPrompt[];
}

/** Prefix of made-up user ids. */
const TRY_USER = "memprefix-try-";

/** Composes every question in every way. Rejects as the API's calls do, or with the signal's reason; always deletes its users. */
export async function runTry(
  input: TryInput,
  k: number,
  progress: (done: number, all: number) => void,
  signal: AbortSignal,
): Promise<readonly TriedWay[]> {
  const run = crypto.getRandomValues(new Uint32Array(2)).reduce((text, part) => text + part.toString(36), "");
  const all = WAYS.length * input.questions.length;
  const tried: TriedWay[] = [];
  const users: string[] = [];
  try {
    for (const way of WAYS) {
      const userId = `${TRY_USER}${run}-${way.id}`;
      users.push(userId);
      const prompts: TriedPrompt[] = [];
      for (const question of input.questions) {
        const found = searched(input.memories, question.query, k);
        const request = {
          userId,
          conversationId: "try",
          messages: [...systemOf(input.system, way, found), ...question.messages],
          memories: way.retention === undefined ? [] : found,
          retention: way.retention,
        };
        const { messages, plan } = await service.compose(request, { signal });
        const lines = messages.map(({ role, content }) => ({ role, content: textIn(content) }) as ChatLine);
        const shared = longest(prompts.map((earlier) => sharedPrefix(earlier.messages, lines)));
        prompts.push({
          messages: lines,
          total: plan.totalTokens,
          expectedCached: plan.expectedCachedTokens,
          shared,
        });
        progress(tried.length * input.questions.length + prompts.length, all);
      }
      tried.push({ way, prompts });
    }
    return tried;
  } finally {
    await Promise.allSettled(users.map((userId) => service.forgetUser({ userId })));
  }
}

function systemOf(system: string, way: Way, memories: readonly TryMemory[]): ChatLine[] {
  if (way.retention !== undefined) return system === "" ? [] : [{ role: "system", content: system }];
  const lines = memories.map(({ memory }) => `- ${memory}`).join("\n");
  return [{ role: "system", content: `${system}\nUser Memories:\n${lines}`.trim() }];
}

function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: string }) => part.text ?? "").join("");
}

function sharedPrefix(a: readonly ChatLine[], b: readonly ChatLine[]): TriedPrefix {
  let messages = 0;
  while (messages < a.length && messages < b.length && isSame(a[messages], b[messages])) messages++;
  const [one, other] = [a[messages], b[messages]];
  if (one === undefined || other === undefined || one.role !== other.role) return { messages, characters: 0 };
  let characters = 0;
  while (characters < one.content.length && one.content[characters] === other.content[characters]) characters++;
  return { messages, characters };
}

function isSame(a: ChatLine | undefined, b: ChatLine | undefined): boolean {
  return a?.role === b?.role && a?.content === b?.content;
}

function longest(prefixes: readonly TriedPrefix[]): TriedPrefix {
  const none: TriedPrefix = { messages: 0, characters: 0 };
  return prefixes.reduce((best, one) => {
    const isLonger =
      one.messages > best.messages || (one.messages === best.messages && one.characters > best.characters);
    return isLonger ? one : best;
  }, none);
}
