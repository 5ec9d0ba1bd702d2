/**
 * `npm run bench -- papers sessions`: many conversations of several turns at a time on one prefix cache, as in ContextPilot's table of concurrent
 * sessions. Recorded real Mem0 searches of six LoCoMo users (first 150 questions each, k = 15), cut into sessions of 8 turns: a session is a
 * conversation, a user's sessions follow one another, and 2 to 32 sessions are open at a time, each asking in turn (`session-rounds.ts`).
 * SGLang's radix cache with room for a quarter and for a sixteenth of all tokens that it is sent without memprefix; answers are cached, too.
 *
 * The first row of each table is what the paper compares with: every turn's memories stay in the history. Takes `--data FOLDER`
 * (`recorded-data.ts`).
 *
 * Floor of what a turn computes: the answer before it, the question, and what was never retrieved before.
 */
import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { encodeO200k } from "../src/cli/o200k.js";
import { type PrefixCache, SimulatedCache } from "../src/core/cache/simulated-cache.js";
import {
  type ChatMessage,
  DEFAULT_ENGINE_MODEL,
  ENGINE_MODELS,
  type MemoryId,
  type PolicyName,
  type RetentionName,
} from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { INSTRUCTION, inLastMessage, PAUSE_MS, readmeMessages } from "../src/eval/base/hand-built.js";
import { saidTo } from "../src/eval/replay/recorded-trace.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { RECORDED_CONVERSATIONS } from "../test/eval/locomo/recorded-searches.js";
import { neededTraces } from "./recorded-data.js";
import { sessionRounds } from "./session-rounds.js";
import { inTurn } from "./shared-cache.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const [K, LIMIT, SESSION_TURNS] = [15, 150, 8];
const CONCURRENT = [2, 4, 8, 16, 32];

/** A turn of a session: what is asked, what the search returned, what is answered. */
interface Turn {
  readonly question: string;
  readonly memories: readonly { readonly id: MemoryId; readonly text: string }[];
  readonly answer: string;
}

interface Session {
  readonly user: string;
  readonly turns: readonly Turn[];
}

/** Builds the prompt of a session's next turn. */
type Build = (session: number, turn: number) => Promise<readonly ChatMessage[]>;

const users = neededTraces().map(({ memories, questions }, at) => {
  const user = RECORDED_CONVERSATIONS[at] ?? "";
  const turns = questions.slice(0, LIMIT).map((asked): Turn => {
    const found = asked.retrieved
      .slice(0, K)
      .map((at) => ({ id: String(at) as MemoryId, text: memories[at]?.memory ?? "" }));
    return { question: asked.question, memories: found, answer: saidTo(asked) };
  });
  const starts = Array.from({ length: Math.ceil(turns.length / SESSION_TURNS) }, (_, nth) => nth * SESSION_TURNS);
  return starts.map((start): Session => ({ user, turns: turns.slice(start, start + SESSION_TURNS) }));
});
const sessions = [...inTurn(users)];
const lengths = sessions.map(({ turns }) => turns.length);

const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });

/** What was asked and answered before a turn, each question as `said` has it. */
function historyOf({ turns }: Session, turn: number, said: (turn: Turn) => string): ChatMessage[] {
  return turns.slice(0, turn).flatMap((one) => [user(said(one)), assistant(one.answer)]);
}

const turnOf = (session: number, turn: number): readonly [Session, Turn] => {
  const of = sessions[session];
  const asked = of?.turns[turn];
  if (of === undefined || asked === undefined) throw new RangeError(`no turn ${turn} of session ${session}`);
  return [of, asked];
};

const withMemories = ({ memories, question }: Turn): string =>
  String(inLastMessage(memories, [user(question)]).at(-1)?.content);

const keptByHand: Build = async (session, turn) => {
  const [of, asked] = turnOf(session, turn);
  return [{ role: "system", content: INSTRUCTION }, ...historyOf(of, turn, withMemories), user(withMemories(asked))];
};

const byHand =
  (build: typeof readmeMessages): Build =>
  async (session, turn) => {
    const [of, asked] = turnOf(session, turn);
    return build(asked.memories, [...historyOf(of, turn, ({ question }) => question), user(asked.question)]);
  };

/** How memprefix composes. */
interface Composer {
  readonly policy: PolicyName;
  readonly retention: RetentionName;
}

/** Prompts of a memprefix that knows nobody at first. */
function composedBy({ policy, retention }: Composer): { readonly build: Build; readonly close: () => Promise<void> } {
  let now = 0;
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => now);
  return {
    build: async (session, turn) => {
      now += PAUSE_MS;
      const [of, asked] = turnOf(session, turn);
      const messages = [...historyOf(of, turn, ({ question }) => question), user(asked.question)];
      const memories = asked.memories.map(({ id, text }) => ({ id, memory: text }));
      const options = { userId: of.user, conversationId: `session ${session}`, system: INSTRUCTION };
      const request = readComposeOptions({ ...options, messages, memories, policy, retention });
      return (await memprefix.compose(request)).messages;
    },
    close: () => memprefix.close(),
  };
}

const BY_HAND: readonly (readonly [name: string, build: Build])[] = [
  ["every turn's memories kept, by hand", keptByHand],
  ["in the last message, by hand", byHand(inLastMessage)],
  ["in the system prompt (Mem0's README)", byHand(readmeMessages)],
];
const COMPOSERS: readonly Composer[] = [
  { policy: "retrieval", retention: "keep" },
  { policy: "context-pilot", retention: "keep" },
  { policy: "prefix-exact", retention: "keep" },
  { policy: "prefix-exact", retention: "ephemeral" },
];

/** A turn's prompt, and the same with its answer. */
interface Served {
  readonly prompt: readonly number[];
  readonly answered: readonly number[];
}

const tokenize = chatTokenizer(encodeO200k);

async function promptsOf(build: Build, open: number): Promise<Served[]> {
  const served: Served[] = [];
  for (const { session, turn } of sessionRounds(lengths, open)) {
    const messages = await build(session, turn);
    const answered = [...messages, assistant(turnOf(session, turn)[1].answer)];
    served.push({ prompt: tokenize(messages), answered: tokenize(answered) });
  }
  return served;
}

/** Tokens computed for a turn, on average. */
function computed(served: readonly Served[], cache: PrefixCache): number {
  let tokens = 0;
  for (const { prompt, answered } of served) {
    tokens += prompt.length - cache.serve(prompt);
    cache.serve(answered);
  }
  return tokens / served.length;
}

/** Every arm's prompts, by how many sessions are open. */
const arms = new Map<string, readonly (readonly Served[])[]>();
for (const [name, build] of BY_HAND)
  arms.set(name, await Promise.all(CONCURRENT.map((open) => promptsOf(build, open))));
for (const composer of COMPOSERS) {
  const served: Served[][] = [];
  for (const open of CONCURRENT) {
    const { build, close } = composedBy(composer);
    served.push(await promptsOf(build, open));
    await close();
  }
  arms.set(`memprefix, \`${composer.policy}\`, \`${composer.retention}\``, served);
}

const [[keptPrompts = []] = []] = [...arms.values()];
const endless = new SimulatedCache("radix");
computed(keptPrompts, endless);
console.log(`${sessions.length} sessions of ${SESSION_TURNS} turns, k = ${K}; ${endless.heldTokens} tokens in all`);
for (const part of [4, 16]) {
  const capacityTokens = Math.floor(endless.heldTokens / part);
  console.log(`\nTokens computed per turn, a cache of ${capacityTokens.toLocaleString("en")} tokens\n`);
  printHead(["sessions at a time", "prompt tokens", ...CONCURRENT]);
  const first: number[] = [];
  for (const [name, served] of arms) {
    const cells = served.map((prompts, at) => {
      const tokens = computed(prompts, new SimulatedCache("radix", { capacityTokens }));
      first[at] ??= tokens;
      return `${tokens.toFixed(0)} (${((first[at] ?? 0) / tokens).toFixed(2)}×)`;
    });
    const [prompts = []] = served;
    printRow([name, mean(prompts.map(({ prompt }) => prompt.length)).toFixed(0), ...cells]);
  }
}
