/**
 * `npm run bench -- shared`: conversations that share one engine's cache, over recorded real Mem0 searches of LoCoMo questions. Tokens computed
 * per prompt, mean / tokens in the prompt, and how far the expectation is from what was cached, as a share of the prompt (after the first 50
 * prompts of all); simulated vLLM cache, memprefix's own service. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * `README`: memories in the system prompt; `last message`: in the newest message only, without memprefix. Then what memprefix may be set to, and its
 * defaults: `read`, where the engine's metrics are read (capacity, block, computed tokens), and `learned` by its reports alone. `÷ by hand`: the
 * worse of those two against the better of those without memprefix; `÷ best`: the same against the best setting of the cell, that is for prompts of
 * every length. `ROOM=1000,…`: capacity ÷ conversations. `N=12` conversations, `TURNS=60`, `K=20`, `BLOCK=16`, `ORDER=turn|zipf|burst`,
 * `FOREIGN=0`: tokens of other clients between two prompts, on average. `WINDOW=20`: clients send their last 20 messages; default: all.
 * `HEAD=0`: tokens that everybody's instructions have besides. `RESTART=1`: the engine is started again after half of the prompts.
 */
import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import {
  CachingEngine,
  type ChatMessage,
  type ConversationId,
  ENGINE_MODELS,
  type MemoryId,
  type UserId,
} from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { answerOf, INSTRUCTION, inLastMessage, readmeMessages } from "../src/eval/base/hand-built.js";
import { seeded } from "../src/eval/measures/bootstrap.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { composeRequest } from "../src/service/compose/compose-request.js";
import { neededTraces } from "./recorded-data.js";
import { printHead, printRow } from "./table.js";

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const rooms = (process.env["ROOM"] ?? "500,1000,2000,3000,4000,6000,12000,30000").split(",").map(Number);
const [conversations, turns, k, block, foreign, window, head] = [
  number("N", 12),
  number("TURNS", 60),
  number("K", 20),
  number("BLOCK", 16),
  number("FOREIGN", 0),
  number("WINDOW", 0),
  number("HEAD", 0),
];
const instructions = head > 0 ? `${INSTRUCTION} ${answerOf(head)}` : INSTRUCTION;
const restarts = number("RESTART", 0) > 0;
const arrivals = process.env["ORDER"] ?? "turn";
/** Most prompts of one conversation in a row, where they come in bursts. */
const MOST_IN_A_ROW = 6;
const ANSWER = "So it is, as you said the other day. ".repeat(2);

const traces = neededTraces();
/** Each conversation asks its own questions: the same recording from another question on. */
const asking = Array.from({ length: conversations }, (_, at): RecordedTrace => {
  const trace = traces[at % traces.length] as RecordedTrace;
  const from = (Math.floor(at / traces.length) * 29) % trace.questions.length;
  return { ...trace, questions: [...trace.questions.slice(from), ...trace.questions.slice(0, from)].slice(0, turns) };
});

/** A prompt as it is sent. */
interface Built {
  readonly messages: readonly ChatMessage[];
  readonly expectedCachedTokens: number | null;
  report(cachedTokens: number, promptTokens: number): Promise<unknown>;
}

/** How the conversations' prompts are built, and what is read of the engine between them. */
interface Arm {
  /** @param client its number */
  build(client: number, history: readonly ChatMessage[], memories: readonly Memory[]): Promise<Built>;
  read(computedTokens: number, at: number): void;
  close(): Promise<void>;
}
interface Memory {
  readonly id: MemoryId;
  readonly text: string;
}

const byHand = (build: typeof inLastMessage) => (): Arm => ({
  build: async (_, history, memories) => ({
    messages: build(memories, history).map((message) => ({
      ...message,
      content: String(message.content).replace(INSTRUCTION, instructions),
    })),
    expectedCachedTokens: null,
    report: async () => {},
  }),
  read: () => {},
  close: async () => {},
});

/** What memprefix is set to; nothing: its defaults. */
type Chosen = Pick<Parameters<typeof composeRequest>[0], "retention" | "history">;

const memprefix =
  (chosen: Chosen, isRead = true) =>
  (capacityTokens: number, now: () => number): Arm => {
    const engine = new CachingEngine();
    const service = openMeasuredMemprefix(ENGINE_MODELS.gpu, now, engine);
    return {
      async build(client, messages, memories) {
        const userId = `user ${client}` as UserId;
        const asked = { userId, conversationId: "c" as ConversationId, messages, memories, system: instructions };
        const { requestId, messages: composed, plan } = await service.compose(composeRequest({ ...asked, ...chosen }));
        return {
          messages: composed,
          expectedCachedTokens: plan.expectedCachedTokens,
          report: (cachedTokens, promptTokens) =>
            service.feedback(userId, null, requestId, { cachedTokens, promptTokens }),
        };
      },
      read(computedTokens, at) {
        if (isRead) engine.read({ capacityTokens, blockTokens: block, computedTokens }, at);
      },
      close: () => service.close(),
    };
  };

const settings: readonly (readonly [string, Chosen])[] =
  window > 0
    ? [
        ["exact", { history: "exact" }],
        ["extended", { history: "extended" }],
      ]
    : [
        ["keep", { retention: "keep" }],
        ["volatile", { retention: "volatile" }],
        ["ephemeral", { retention: "ephemeral" }],
      ];
const byHands = [
  ["README", byHand(readmeMessages)],
  ["last message", byHand(inLastMessage)],
] as const;
const defaults = [
  ["read", memprefix({})],
  ["learned", memprefix({}, false)],
] as const;
const arms: readonly (readonly [string, (capacity: number, now: () => number) => Arm])[] = [
  ...byHands,
  ...settings.map(([name, chosen]) => [name, memprefix(chosen)] as const),
  ...defaults,
];

/** Who asks next, until nobody has a question left. */
function* nextOf(count: number): Generator<number, never> {
  const draw = seeded(7);
  const weights = Array.from({ length: count }, (_, at) => 1 / (at + 1));
  const sum = weights.reduce((a, b) => a + b, 0);
  for (let at = 0; ; at++) {
    if (arrivals === "turn") yield at % count;
    else if (arrivals === "burst") {
      const chosen = Math.floor(draw() * count);
      for (let left = 1 + Math.floor(draw() * MOST_IN_A_ROW); left > 0; left--) yield chosen;
    } else {
      let left = draw() * sum;
      let chosen = 0;
      for (left -= weights[0] as number; left > 0 && chosen < count - 1; left -= weights[chosen] as number) chosen++;
      yield chosen;
    }
  }
}

async function run(capacity: number, open: (capacity: number, now: () => number) => Arm) {
  const draw = seeded(3);
  const started = () => new SimulatedCache("blocks", { capacityTokens: capacity }, block);
  let cache = started();
  const tokenize = chatTokenizer(encodeO200k);
  let [clock, computed, foreignComputed, prompts, off, judged, sent] = [1, 0, 0, 0, 0, 0, 0];
  let countedFrom = 0;
  const arm = open(capacity, () => clock);
  const histories = asking.map((): ChatMessage[] => []);
  const order = nextOf(conversations);
  for (let left = conversations * turns; left > 0; left--) {
    const at = order.next().value;
    const [trace, history] = [asking[at] as RecordedTrace, histories[at] as ChatMessage[]];
    clock += 1_000;
    if (restarts && left === Math.floor((conversations * turns) / 2)) {
      cache = started();
      countedFrom = computed + foreignComputed;
    }
    arm.read(computed + foreignComputed - countedFrom, clock);
    const asked = trace.questions[history.length / 2];
    // Who has asked all their questions is away.
    if (asked === undefined) continue;
    history.push({ role: "user", content: asked.question });
    const memories = asked.retrieved
      .slice(0, k)
      .map((memory) => ({ id: `m-${memory}` as MemoryId, text: trace.memories[memory]?.memory ?? "" }));
    const built = await arm.build(at, window > 0 ? history.slice(-window) : history, memories);
    const answered: ChatMessage = { role: "assistant", content: ANSWER };
    history.push(answered);
    const tokens = tokenize(built.messages);
    const cachedTokens = cache.serve(tokens);
    cache.serve(tokenize([...built.messages, answered]));
    const others = Math.floor(2 * foreign * draw());
    if (others > 0) cache.serve(Array.from({ length: others }, (_, n) => 1e6 * clock + n));
    foreignComputed += others;
    clock += 500;
    await built.report(cachedTokens, tokens.length);
    computed += tokens.length - cachedTokens;
    sent += tokens.length;
    prompts++;
    const { expectedCachedTokens } = built;
    if (prompts > 50 && expectedCachedTokens !== null) {
      off += Math.abs(expectedCachedTokens - cachedTokens) / tokens.length;
      judged++;
    }
  }
  await arm.close();
  return { computed: computed / prompts, sent: sent / prompts, off: judged === 0 ? null : off / judged };
}

console.log(
  `${conversations} conversations, ${turns} turns, k=${k}, blocks of ${block}, ${arrivals}, foreign ${foreign}, ${window > 0 ? `last ${window} messages` : "whole histories"}, ${head} more tokens of instructions`,
);
printHead(["C ÷ N", ...arms.map(([name]) => name), "÷ by hand", "÷ best"]);
for (const room of rooms) {
  const cells: Awaited<ReturnType<typeof run>>[] = [];
  for (const [, open] of arms) cells.push(await run(room * conversations, open));
  const all = cells.map(({ computed }) => computed);
  const own = Math.max(...all.slice(-defaults.length));
  const ratios = [all.slice(0, byHands.length), all.slice(byHands.length, -defaults.length)].map((others) =>
    (own / Math.min(...others)).toFixed(2),
  );
  const shown = cells.map(
    ({ computed, sent, off }) =>
      `${computed.toFixed(0)} / ${sent.toFixed(0)}${off === null ? "" : ` (${(100 * off).toFixed(1)} %)`}`,
  );
  printRow([room, ...shown, ...ratios]);
}
