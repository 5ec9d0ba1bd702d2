/**
 * `npm run bench:shared`: conversations that share one engine's cache, over recorded real Mem0 searches of LoCoMo questions. Each client
 * sends its whole history. Tokens computed per prompt, mean, and how far the expectation is from what was cached, as a share of the prompt
 * (after the first 50 prompts of all); simulated vLLM cache. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * `README`: memories in the system prompt; `last message`: in the newest message only, without memstem. `read`: the engine's metrics are read
 * (capacity, block, computed tokens); `learned`: its reports alone. `ROOM=1000,…`: capacity ÷ conversations. `N=12` conversations, `TURNS=60`,
 * `K=20`, `BLOCK=16`, `ORDER=turn|zipf|burst`, `FOREIGN=0`: tokens of other clients between two prompts, on average.
 */
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import {
  type ChatMessage,
  EngineCache,
  type MemoryId,
  ORDERING_POLICIES,
  type RetentionName,
  SharedCache,
} from "../src/core/index.js";
import { readmeMessages } from "../src/eval/base/hand-built.js";
import { seeded } from "../src/eval/measures/bootstrap.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { composeTrace } from "../src/eval/replay/replay-trace.js";
import { BlockHashCache } from "../src/simulator/block-hash-cache.js";
import { chatTokenizer } from "../src/simulator/chat-tokens.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { neededData } from "./recorded-data.js";

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const rooms = (process.env["ROOM"] ?? "500,1000,2000,3000,4000,6000,12000,30000").split(",").map(Number);
const [conversations, turns, k, block, foreign] = [
  number("N", 12),
  number("TURNS", 60),
  number("K", 20),
  number("BLOCK", 16),
  number("FOREIGN", 0),
];
const arrivals = process.env["ORDER"] ?? "turn";
/** Most prompts of one conversation in a row, where they come in bursts. */
const MOST_IN_A_ROW = 6;
const ANSWER = "So it is, as you said the other day. ".repeat(2);

/** A prompt, and with its answer. */
interface Asked {
  readonly tokens: readonly number[];
  readonly answered: readonly number[] | null;
  readonly expectedCachedTokens: number | null;
  report(cachedTokens: number): void;
}
type Client = Generator<Asked, void, undefined>;

const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(neededData(), name));
/** Each conversation asks its own questions: the same recording from another question on. */
const asking = Array.from({ length: conversations }, (_, at): RecordedTrace => {
  const trace = traces[at % traces.length] as RecordedTrace;
  const from = (Math.floor(at / traces.length) * 29) % trace.questions.length;
  return { ...trace, questions: [...trace.questions.slice(from), ...trace.questions.slice(0, from)].slice(0, turns) };
});

function* byHand(trace: RecordedTrace, isReadme: boolean): Client {
  const tokenize = chatTokenizer(encodeO200k);
  const history: ChatMessage[] = [];
  for (const { question, retrieved } of trace.questions) {
    const memories = retrieved
      .slice(0, k)
      .map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" }));
    const asked: ChatMessage = { role: "user", content: question };
    const list = `User Memories:\n${memories.map(({ text }) => `- ${text}`).join("\n")}`;
    const messages = isReadme
      ? readmeMessages(memories, [...history, asked])
      : [...history, { role: "user" as const, content: `${list}\n\n${question}` }];
    const answered: ChatMessage = { role: "assistant", content: ANSWER };
    history.push(asked, answered);
    yield {
      tokens: tokenize(messages),
      answered: tokenize([...messages, answered]),
      expectedCachedTokens: null,
      report: () => {},
    };
  }
}

/** Who asks next, until nobody has a question left. */
function* nextOf(count: number): Generator<number> {
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

/** How the conversations of one arm ask, and what is read of the engine between their prompts. */
interface Arm {
  clientOf(trace: RecordedTrace, stream: string, now: () => number): Client;
  read?(computedTokens: number, at: number): void;
}

function run(capacity: number, { clientOf, read }: Arm) {
  const draw = seeded(3);
  const cache = new BlockHashCache({ capacityTokens: capacity }, block);
  let [clock, computed, foreignComputed, prompts, off, judged, sent] = [1, 0, 0, 0, 0, 0, 0];
  const clients = asking.map((trace, at) => clientOf(trace, `s${at}`, () => clock));
  const order = nextOf(conversations);
  for (let left = conversations * turns; left > 0; left--) {
    const at = order.next().value as number;
    clock += 1_000;
    read?.(computed + foreignComputed, clock);
    const next = (clients[at] as Client).next();
    if (next.done) {
      if (arrivals === "turn") break;
      continue;
    }
    const { tokens, answered, expectedCachedTokens, report } = next.value;
    const { cachedTokens } = cache.serve({ tokens }, clock);
    if (answered !== null) cache.serve({ tokens: answered }, clock);
    const others = Math.floor(2 * foreign * draw());
    if (others > 0) cache.serve({ tokens: Array.from({ length: others }, (_, n) => 1e6 * clock + n) }, clock);
    foreignComputed += others;
    clock += 500;
    report(cachedTokens);
    computed += tokens.length - cachedTokens;
    sent += tokens.length;
    prompts++;
    if (process.env["DEBUG"] && prompts > 50 && prompts < 80)
      console.log(at, tokens.length, "expected", expectedCachedTokens, "cached", cachedTokens);
    if (prompts > 50 && expectedCachedTokens !== null) {
      off += Math.abs(expectedCachedTokens - cachedTokens) / tokens.length;
      judged++;
    }
  }
  return { computed: computed / prompts, sent: sent / prompts, off: judged === 0 ? null : off / judged };
}

const memstem = (retention: RetentionName, isRead: boolean) => (capacityTokens: number) => {
  const engine = new EngineCache();
  const cache = new SharedCache(engine);
  const arm: Arm = {
    clientOf: (trace, stream, now) =>
      composeTrace(
        trace,
        { encode: encodeO200k, countTokens: countO200k },
        {
          k,
          policy: ORDERING_POLICIES["prefix-exact"],
          budgetRatio: null,
          layout: "conversation",
          retention,
          answer: ANSWER,
          shared: { cache, stream, now },
        },
      ),
    ...(isRead && {
      read: (computedTokens: number, at: number) =>
        engine.read({ capacityTokens, blockTokens: block, computedTokens }, at),
    }),
  };
  return arm;
};
const arms: [string, (capacity: number) => Arm][] = [
  ["README", () => ({ clientOf: (trace) => byHand(trace, true) })],
  ["last message", () => ({ clientOf: (trace) => byHand(trace, false) })],
  ["keep, read", memstem("keep", true)],
  ["ephemeral, read", memstem("ephemeral", true)],
  ["auto, read", memstem("auto", true)],
  ["auto, learned", memstem("auto", false)],
];
console.log(
  `${conversations} conversations, ${turns} turns, k=${k}, blocks of ${block}, ${arrivals}, foreign ${foreign}`,
);
console.log(`| C ÷ N | ${arms.map(([name]) => name).join(" | ")} |`);
for (const room of rooms) {
  const cells = arms.map(([, arm]) => {
    const { computed, sent, off } = run(room * conversations, arm(room * conversations));
    return `${computed.toFixed(0)} / ${sent.toFixed(0)}${off === null ? "" : ` (${(100 * off).toFixed(1)} %)`}`;
  });
  console.log(`| ${room} | ${cells.join(" | ")} |`);
}
