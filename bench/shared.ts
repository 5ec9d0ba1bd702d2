/**
 * `npm run bench:shared`: conversations that share one engine's cache, over recorded real Mem0 searches of LoCoMo questions. Each client
 * sends its whole history. Tokens computed per prompt, mean, and how far the expectation is from what was cached, as a share of the prompt
 * (after the first 50 prompts of all); simulated vLLM cache. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * `README`: memories in the system prompt; `last message`: in the newest message only, without memstem. `ROOM=1000,…`: capacity ÷
 * conversations. `N=12` conversations, `TURNS=60`, `K=20`, `BLOCK=16`, `ORDER=turn|zipf`, `FOREIGN=0`: tokens of other clients between two
 * prompts.
 */
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import {
  type ChatMessage,
  EngineCache,
  type MemoryId,
  ORDERING_POLICIES,
  RETENTION_NAMES,
  SharedCache,
} from "../src/core/index.js";
import { readmeMessages } from "../src/eval/base/hand-built.js";
import { seeded } from "../src/eval/base/seeded.js";
import { composeTrace } from "../src/eval/replay/compose-trace.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
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
const isZipf = process.env["ORDER"] === "zipf";
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
    if (!isZipf) yield at % count;
    else {
      let left = draw() * sum;
      let chosen = 0;
      for (left -= weights[0] as number; left > 0 && chosen < count - 1; left -= weights[chosen] as number) chosen++;
      yield chosen;
    }
  }
}

function run(capacity: number, clientOf: (trace: RecordedTrace, stream: string, tick: () => number) => Client) {
  const cache = new BlockHashCache({ capacityTokens: capacity }, block);
  let [clock, computed, prompts, off, judged, sent] = [1, 0, 0, 0, 0, 0];
  const clients = asking.map((trace, at) => clientOf(trace, `s${at}`, () => clock));
  const order = nextOf(conversations);
  for (let left = conversations * turns; left > 0; left--) {
    const at = order.next().value as number;
    clock += 1_000;
    const next = (clients[at] as Client).next();
    if (next.done) {
      if (!isZipf) break;
      continue;
    }
    const { tokens, answered, expectedCachedTokens, report } = next.value;
    const { cachedTokens } = cache.serve({ tokens }, clock);
    if (answered !== null) cache.serve({ tokens: answered }, clock);
    if (foreign > 0) cache.serve({ tokens: Array.from({ length: foreign }, (_, n) => 1e6 * clock + n) }, clock);
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

const arms: [string, (capacity: number) => (trace: RecordedTrace, stream: string, now: () => number) => Client][] = [
  ["README", () => (trace) => byHand(trace, true)],
  ["last message", () => (trace) => byHand(trace, false)],
  ...(["told", "learned"] as const).flatMap((kind) =>
    RETENTION_NAMES.filter((retention) => (kind === "learned" ? retention === "auto" : retention !== "volatile")).map(
      (retention): (typeof arms)[number] => [
        `${retention}, ${kind}`,
        (capacity) => {
          const cache = new SharedCache(new EngineCache(kind === "told" ? capacity : null));
          return (trace, stream, now) =>
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
            );
        },
      ],
    ),
  ),
];
console.log(
  `${conversations} conversations, ${turns} turns, k=${k}, blocks of ${block}, ${isZipf ? "zipf" : "in turn"}, foreign ${foreign}`,
);
console.log(`| C ÷ N | ${arms.map(([name]) => name).join(" | ")} |`);
for (const room of rooms) {
  const cells = arms.map(([, arm]) => {
    const { computed, sent, off } = run(room * conversations, arm(room * conversations));
    return `${computed.toFixed(0)} / ${sent.toFixed(0)}${off === null ? "" : ` (${(100 * off).toFixed(1)} %)`}`;
  });
  console.log(`| ${room} | ${cells.join(" | ")} |`);
}
