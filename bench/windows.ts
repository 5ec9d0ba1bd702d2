/**
 * `npm run bench -- windows`: clients that send the last n messages of a conversation. Recorded real Mem0 searches of six LoCoMo
 * conversations, first 120 questions each (or `TURNS`), answers of 120 tokens, through token-exact caches that keep answers too. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * Means over the conversations. `size`: our prompts' tokens ÷ those of memories in the last message of the same window. `to prefill`: tokens
 * to compute per turn, each conversation with an endless cache of its own. `fewer`: those of memories in the last message ÷ ours.
 *
 * `room of 8`, `of 32`: the same in an LRU cache that the six conversations share, asking in turn. It holds the tokens of so many prompts with
 * memories in the last message; longer prompts then need more of it.
 *
 * `K=20,100`, `WINDOW=8,20`, `RATIOS=1.5,2,3` of the histories that have one. `SIZES=2,3`: in place of `RATIOS`, the largest ratio (in steps of a
 * hundredth) whose measured size is at most that. All answers have the same text, so that a prompt whose window begins with an answer finds it in
 * the cache, 120 tokens a turn.
 *
 * Floor: the turn's new text, and (window + memories) ÷ turns of an epoch.
 */
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { type PrefixCache, SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { HISTORY_NAMES, type HistoryName } from "../src/core/conversation/epoch.js";
import type { ChatMessage } from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { answerOf, INSTRUCTION, inLastMessage } from "../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { openService } from "../test/service/compose/service-fixture.js";
import { neededTraces } from "./recorded-data.js";
import { inTurn } from "./shared-cache.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const TURNS = Number(process.env["TURNS"] ?? 120);
const numbers = (name: string, standard: string) => (process.env[name] ?? standard).split(",").map(Number);
const KS = numbers("K", "20,100");
const WINDOWS = numbers("WINDOW", "8,20");
const RATIOS = numbers("RATIOS", "1.5,2,3");
const SIZES = process.env["SIZES"] === undefined ? null : numbers("SIZES", "");
const HELD_PROMPTS = [8, 32] as const;
/** `stored` is for clients that send only new messages. */
const WINDOW_HISTORIES = HISTORY_NAMES.filter((name) => name !== "stored");
/** Whether `history_ratio` bounds this history. */
const hasRatio = (history: HistoryName) => history !== "exact";
const traces = neededTraces();

/** A prompt, and with its answer, as they stand in a cache. */
interface Sent {
  readonly tokens: readonly number[];
  readonly answered: readonly number[];
}

/** Every conversation's prompts. */
type Conversations = readonly (readonly Sent[])[];

type Memory = { readonly id: string; readonly memory: string };
/** A turn's prompt, from what the client sends and what its search found. */
type Build = (window: readonly ChatMessage[], memories: readonly Memory[]) => Promise<readonly ChatMessage[]>;

async function converse(trace: RecordedTrace, k: number, length: number, build: Build): Promise<readonly Sent[]> {
  const tokenize = chatTokenizer(encodeO200k);
  const said: ChatMessage[] = [];
  const sent: Sent[] = [];
  for (const [turn, { question, retrieved }] of trace.questions.slice(0, TURNS).entries()) {
    said.push({ role: "user", content: `${turn}. ${question}` });
    const found = retrieved.slice(0, k).map((at) => ({ id: String(at), memory: trace.memories[at]?.memory ?? "" }));
    const messages = await build(said.slice(-length), found);
    const answered: ChatMessage = { role: "assistant", content: answerOf(120) };
    sent.push({ tokens: tokenize(messages), answered: tokenize([...messages, answered]) });
    said.push(answered);
  }
  return sent;
}

const byHand: Build = async (window, memories) =>
  inLastMessage(
    memories.map(({ id, memory }) => ({ id: id as never, text: memory })),
    window,
  );

/** Composed in-process, each conversation in a scope of its own. */
async function composed(k: number, length: number, settings: object): Promise<Conversations> {
  const conversations = [];
  for (const trace of traces) {
    const service = openService({ countTokens: countO200k, now: Date.now });
    const build: Build = async (messages, memories) => {
      const options = { userId: "ana", conversationId: "c", system: INSTRUCTION, messages, memories, ...settings };
      return (await service.compose(readComposeOptions(options))).messages;
    };
    conversations.push(await converse(trace, k, length, build));
    await service.close();
  }
  return conversations;
}

/** Tokens to compute of each prompt. */
function prefilled(prompts: Iterable<Sent>, cache: PrefixCache): number[] {
  return [...prompts].map((prompt) => {
    const cachedTokens = cache.serve(prompt.tokens);
    cache.serve(prompt.answered);
    return prompt.tokens.length - cachedTokens;
  });
}

const tokensPerPrompt = (sent: readonly Sent[]) => mean(sent.map(({ tokens }) => tokens.length));

/** One window and k: what is compared with memories in the last message. */
class Comparison {
  private constructor(
    private readonly k: number,
    private readonly length: number,
    private readonly hand: Conversations,
  ) {}

  static async open(k: number, length: number): Promise<Comparison> {
    return new Comparison(k, length, await Promise.all(traces.map((trace) => converse(trace, k, length, byHand))));
  }

  sizeOf(conversations: Conversations): number {
    return mean(conversations.map((sent, at) => tokensPerPrompt(sent) / tokensPerPrompt(this.hand[at] ?? [])));
  }

  show(name: string, conversations: Conversations = this.hand): void {
    const alone = (of: Conversations) => mean(of.map((sent) => mean(prefilled(sent, new SimulatedCache("radix")))));
    const shared = this.#sharedCaches().map((newCache) => {
      const cost = (of: Conversations) => mean(prefilled(inTurn(of), newCache()));
      return cost(this.hand) / cost(conversations);
    });
    const to = alone(conversations);
    const ratios = [alone(this.hand) / to, ...shared].map((ratio) => ratio.toFixed(2));
    const cells = [this.k, this.length, name, this.sizeOf(conversations).toFixed(2), Math.round(to), ...ratios];
    printRow(cells);
  }

  #sharedCaches(): (() => PrefixCache)[] {
    const each = mean(this.hand.map(tokensPerPrompt));
    return HELD_PROMPTS.map((held) => () => new SimulatedCache("radix", { capacityTokens: Math.round(held * each) }));
  }

  /** The largest ratio, in steps of a hundredth, whose prompts are at most so large; null: even 1 is too much. */
  async fit(size: number, settings: object): Promise<{ ratio: number; conversations: Conversations } | null> {
    let best: { ratio: number; conversations: Conversations } | null = null;
    let [low, high] = [100, Math.ceil(size * 150)];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const ratio = middle / 100;
      const conversations = await composed(this.k, this.length, { ...settings, historyRatio: ratio });
      if (this.sizeOf(conversations) > size) high = middle - 1;
      else {
        best = { ratio, conversations };
        low = middle + 1;
      }
    }
    return best;
  }
}

const CACHES = ["room of 8", "of 32"];
printHead(["k", "window", "messages are", "size", "to prefill", "fewer", ...CACHES]);
for (const k of KS) {
  for (const length of WINDOWS) {
    const comparison = await Comparison.open(k, length);
    comparison.show("in the last message, by hand");
    for (const history of WINDOW_HISTORIES) {
      if (!hasRatio(history)) {
        comparison.show(`\`${history}\``, await composed(k, length, { history }));
        continue;
      }
      if (SIZES === null) {
        for (const historyRatio of RATIOS)
          comparison.show(
            `\`${history}\`, ratio ${historyRatio}`,
            await composed(k, length, { history, historyRatio }),
          );
        continue;
      }
      for (const size of SIZES) {
        const fitted = await comparison.fit(size, { history });
        if (fitted === null) printRow([k, length, `\`${history}\`, size ≤ ${size}: with no ratio`]);
        else comparison.show(`\`${history}\`, ratio ${fitted.ratio}, size ≤ ${size}`, fitted.conversations);
      }
    }
  }
}
