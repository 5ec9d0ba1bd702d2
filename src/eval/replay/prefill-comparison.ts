import type { ChatMessage, ConversationId, RetrievedMemory, UserId } from "../../core/index.js";
import { composeRequest } from "../../service/compose/compose-request.js";
import type { Memstem } from "../../service/library/memstem.js";
import { BlockHashCache } from "../../simulator/block-hash-cache.js";
import { chatTokenizer, type Encode } from "../../simulator/chat-tokens.js";
import { alignedTable } from "../base/aligned-table.js";
import { INSTRUCTION } from "../base/instruction.js";

/** A question with what memory search returned for it, best first, and the answer that the history will hold. */
export interface AskedQuestion {
  readonly question: string;
  readonly answer: string;
  readonly memories: readonly RetrievedMemory[];
}

export type Layout = "conversation" | "single";
export type Builder = "mem0-readme" | "memstem";

/** What one builder's prompts came to in one layout. Tokens, summed over all questions. */
export interface ArmCost {
  readonly layout: Layout;
  readonly builder: Builder;
  readonly promptTokens: number;
  /** Tokens that are not in the longest beginning shared with anything sent before, in blocks of 16. */
  readonly prefillTokens: number;
}

/** The prompt that Mem0's README, its examples and its provider for the Vercel AI SDK build: memories in the system message, in search order. */
export function readmeMessages(memories: readonly RetrievedMemory[], history: readonly ChatMessage[]): ChatMessage[] {
  const list = memories.map(({ text }) => `- ${text}`).join("\n");
  return [{ role: "system", content: `${INSTRUCTION}\nUser Memories:\n${list}` }, ...history];
}

/**
 * Builds every question's prompt four ways (as one conversation and as single requests; as Mem0's README does and with memstem) and
 * counts what an engine with an endless prefix cache would have to prefill. Every arm starts with an empty cache. `memstem` is given the
 * same memories and must not know the users `userFor` names yet. Calls `onTurn` after each prompt.
 */
export async function comparePrefill(
  memstem: Memstem,
  questions: readonly AskedQuestion[],
  encode: Encode,
  userFor: (layout: Layout) => UserId,
  onTurn: () => void = () => {},
): Promise<ArmCost[]> {
  const tokenize = chatTokenizer(encode);
  const costs: ArmCost[] = [];
  for (const layout of ["conversation", "single"] as const) {
    for (const builder of ["mem0-readme", "memstem"] as const) {
      const cache = new BlockHashCache();
      const history: ChatMessage[] = [];
      let promptTokens = 0;
      let prefillTokens = 0;
      for (const { question, answer, memories } of questions) {
        const asked: ChatMessage = { role: "user", content: question };
        const messages = [...(layout === "conversation" ? history : []), asked];
        const prompt =
          builder === "mem0-readme"
            ? readmeMessages(memories, messages)
            : (await memstem.compose(memstemRequest(userFor(layout), layout, messages, memories))).messages;
        const tokens = tokenize(prompt);
        promptTokens += tokens.length;
        prefillTokens += tokens.length - cache.serve({ tokens }, 0).cachedTokens;
        history.push(asked, { role: "assistant", content: answer });
        onTurn();
      }
      costs.push({ layout, builder, promptTokens, prefillTokens });
    }
  }
  return costs;
}

function memstemRequest(
  userId: UserId,
  layout: Layout,
  messages: readonly ChatMessage[],
  memories: readonly RetrievedMemory[],
) {
  return composeRequest({
    userId,
    conversationId: layout === "conversation" ? ("questions" as ConversationId) : null,
    messages: [...messages],
    memories,
    system: INSTRUCTION,
  });
}

/** The figures as a table in Markdown, per question; `saved` is how many times fewer tokens memstem leaves to prefill. */
export function prefillTable(costs: readonly ArmCost[], questions: number): string {
  const rows = costs.map((cost) => {
    const readme = costs.find(({ layout, builder }) => layout === cost.layout && builder === "mem0-readme");
    const ratio = (readme?.prefillTokens ?? 0) / cost.prefillTokens;
    return [
      cost.layout,
      cost.builder === "memstem" ? "memstem" : "Mem0's README",
      perQuestion(cost.promptTokens, questions),
      perQuestion(cost.prefillTokens, questions),
      cost.builder === "memstem" ? `${ratio.toFixed(1)}× fewer` : "",
    ];
  });
  return alignedTable(
    ["layout", "prompt built by", "prompt tokens", "to prefill", ""],
    rows,
    (column) => column !== 2 && column !== 3,
  );
}

function perQuestion(tokens: number, questions: number): string {
  return Math.round(tokens / questions).toLocaleString("en");
}
