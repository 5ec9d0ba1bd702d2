import { SimulatedCache } from "../../core/cache/simulated-cache.js";
import { pricedModel } from "../../core/cost/prices.js";
import {
  type ChatMessage,
  type ConversationId,
  promptCost,
  type RetrievedMemory,
  type UserId,
} from "../../core/index.js";
import { composeRequest } from "../../service/compose/compose-request.js";
import type { Memprefix } from "../../service/library/memprefix.js";
import { alignedTable } from "../base/aligned-table.js";
import { chatTokenizer, type Encode } from "../base/chat-tokens.js";
import { INSTRUCTION, readmeMessages } from "../base/hand-built.js";
import { blocksIn } from "../base/prompt-memories.js";

/** A question, its search results, best first, and the answer that the history will hold. */
export interface ComparedQuestion {
  readonly question: string;
  readonly answer: string;
  readonly memories: readonly RetrievedMemory[];
}

/** Prompts as Mem0's README builds them, and memprefix's; conversations with either retention. */
export const PREFILL_ARMS = [
  { layout: "conversation", builder: "mem0-readme", retention: null },
  { layout: "conversation", builder: "memprefix, ephemeral", retention: "ephemeral" },
  { layout: "conversation", builder: "memprefix, keep", retention: "keep" },
  { layout: "single", builder: "mem0-readme", retention: null },
  { layout: "single", builder: "memprefix", retention: null },
] as const;

const BILLED_BY = pricedModel({ host: null, family: "openai" }, null);

export interface ArmCost extends Pick<(typeof PREFILL_ARMS)[number], "layout" | "builder"> {
  readonly promptTokens: number;
  /** Tokens after the longest prefix shared with an earlier prompt, in blocks of 16. */
  readonly prefillTokens: number;
  /** Price in uncached tokens: OpenAI's, where writes are free. */
  readonly billed: number;
  readonly memories: number;
}

/**
 * Builds every question's prompt in each of {@link PREFILL_ARMS} and counts the tokens to prefill for an engine with an unlimited prefix
 * cache, empty at each arm's start. `memprefix` must be new: each arm is a user. Calls `onTurn` after each prompt.
 */
export async function comparePrefill(
  memprefix: Memprefix,
  questions: readonly ComparedQuestion[],
  encode: Encode,
  onTurn: () => void = () => {},
): Promise<ArmCost[]> {
  const tokenize = chatTokenizer(encode);
  const costs: ArmCost[] = [];
  for (const { layout, builder, retention } of PREFILL_ARMS) {
    const userId = `${layout}-${builder}` as UserId;
    const cache = new SimulatedCache("blocks");
    const history: ChatMessage[] = [];
    const sums = { promptTokens: 0, prefillTokens: 0, billed: 0, memories: 0 };
    for (const { question, answer, memories } of questions) {
      const asked: ChatMessage = { role: "user", content: question };
      const messages = [...(layout === "conversation" ? history : []), asked];
      const isReadme = builder === "mem0-readme";
      const request = {
        ...{ userId, messages, memories: [...memories], system: INSTRUCTION },
        conversationId: layout === "conversation" ? ("questions" as ConversationId) : null,
        ...(retention === null ? {} : { retention }),
      };
      const prompt = isReadme
        ? readmeMessages(memories, messages)
        : (await memprefix.compose(composeRequest(request))).messages;
      const tokens = tokenize(prompt);
      const cachedTokens = cache.serve(tokens);
      sums.promptTokens += tokens.length;
      sums.prefillTokens += tokens.length - cachedTokens;
      sums.billed += promptCost(BILLED_BY, tokens.length, cachedTokens);
      sums.memories += isReadme ? memories.length : prompt.flatMap(blocksIn).length;
      history.push(asked, { role: "assistant", content: answer });
      onTurn();
    }
    costs.push({ layout, builder, ...sums });
  }
  return costs;
}

/** The figures per question as a Markdown table; the last column says how many times fewer tokens memprefix leaves to prefill. */
export function prefillTable(costs: readonly ArmCost[], questions: number): string {
  const rows = costs.map((cost) => {
    const readme = costs.find(({ layout, builder }) => layout === cost.layout && builder === "mem0-readme");
    const ratio = (readme?.prefillTokens ?? 0) / cost.prefillTokens;
    return [
      cost.layout,
      cost.builder === "mem0-readme" ? "Mem0's README" : cost.builder,
      ...[cost.promptTokens, cost.memories, cost.prefillTokens, cost.billed].map((sum) =>
        Math.round(sum / questions).toLocaleString("en"),
      ),
      cost === readme ? "" : `${ratio.toFixed(1)}× fewer`,
    ];
  });
  return alignedTable(
    ["layout", "prompt built by", "prompt tokens", "memories", "to prefill", "billed", ""],
    rows,
    (column) => column < 2 || column === 6,
  );
}
