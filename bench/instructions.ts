/**
 * `npm run bench -- instructions`: what `MEMPREFIX_STABLE_INSTRUCTIONS=on` does to answers and to tokens, on vLLM. A system text has a date
 * line, a token counter and a to-do list, and one of them changes at each turn; the last question of three turns is about what changed, or about
 * a rule or a memory that did not. First, 12 turns of a conversation with a clock: how many tokens vLLM computes. Then how likely the right
 * answer is with the current text in front (`off`), and with the first text and what changed in the newest message (`on`). `MODEL=smol`;
 * `OUT=FILE` keeps what was measured, and a run goes on from there. `npm run engines` installs what it starts.
 *
 * Floor: as likely as with the current text; at most 2 % more tokens than without the clock.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { assembleWhereStored } from "../src/cli/assemble.js";
import { readSettings } from "../src/cli/settings.js";
import type { ChatMessage } from "../src/core/index.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { installAll } from "../test/real-engines/install.js";
import { MODELS } from "../test/real-engines/packages.js";
import { serving } from "../test/real-engines/serving.js";
import { likelihoodOn } from "./answer-likelihood.js";
import { KeptRecords } from "./kept-records.js";
import { mean, meanWithInterval } from "./statistics.js";
import { percent, printHead, printRow } from "./table.js";

const { env } = process;
const model = MODELS.find((name) => name === (env["MODEL"] ?? "smol")) ?? "smol";
const KINDS = ["date", "counter", "to-do", "rule", "memory"] as const;
type Kind = (typeof KINDS)[number];

const RULES = [
  "You help Ada with her house, her garden and her work, and you know her well.",
  "Answer in one short sentence, and say no more than was asked for.",
  "Prices are in francs. Distances are in kilometres. Weeks begin on Monday.",
  "The gardener's name is Bruno, and he comes every second Friday.",
  "The spare key is with the neighbour on the left, whose name is Odile.",
  "The dentist is called Dr. Keller, and the vet is called Dr. Marti.",
  "The library closes at seven, and the market is on Saturday.",
  "If you do not know something, say so, and do not guess.",
];
const MEMORIES = [
  "Ada's dog is called Pim.",
  "Ada drives a green van.",
  "Ada's sister Clara lives in Basel.",
  "Ada is allergic to walnuts.",
  "Ada plays the cello on Tuesdays.",
  "Ada's birthday is in October.",
  "Ada's boat is called Heron.",
  "Ada works as a surveyor.",
];

interface Case {
  readonly kind: Kind;
  readonly name: string;
  /** The moving lines of each turn, the last one the current. */
  readonly lines: readonly (readonly string[])[];
  readonly question: string;
  readonly answer: string;
}

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const TASKS = [
  "water the roses",
  "call the plumber",
  "pay the rent",
  "buy stamps",
  "fix the gate",
  "book the ferry",
  "wash the van",
  "sort the mail",
];
const [NO_DATE, NO_COUNTER] = ["Today is Monday, 2 March.", "Tokens left: 9000."];
const listOf = (tasks: readonly string[]) => ["Still to do:", ...tasks.map((task) => `- ${task}`)];

const CASES: readonly Case[] = [
  ...DAYS.concat("Monday").map((_, n): Case => {
    const today = (turn: number) => `Today is ${DAYS[(n + turn) % 7]}, ${5 + n + turn} May.`;
    const [question, answer] =
      n % 2 === 0
        ? ["What day of the week is it today?", `${DAYS[(n + 2) % 7]}.`]
        : ["What is the date today?", `${7 + n} May.`];
    const lines = [0, 1, 2].map((turn) => [today(turn), NO_COUNTER, ...listOf(TASKS.slice(0, 3))]);
    return { kind: "date", name: `date ${n}`, lines, question, answer };
  }),
  ...TASKS.map((_, n): Case => {
    const left = (turn: number) => 8_000 - 350 * n - 1_210 * turn;
    const lines = [0, 1, 2].map((turn) => [NO_DATE, `Tokens left: ${left(turn)}.`, ...listOf(TASKS.slice(0, 3))]);
    return {
      kind: "counter",
      name: `counter ${n}`,
      lines,
      question: "How many tokens are left?",
      answer: `${left(2)}.`,
    };
  }),
  ...TASKS.map((_, n): Case => {
    const task = (at: number) => TASKS[(n + at) % TASKS.length] ?? "";
    const lines = [[0, 1, 2], [1, 2], [2]].map((open) => [NO_DATE, NO_COUNTER, ...listOf(open.map(task))]);
    return { kind: "to-do", name: `to-do ${n}`, lines, question: "What is still to do?", answer: `${task(2)}.` };
  }),
  ...(
    [
      ["What is the gardener's name?", "Bruno."],
      ["Who has the spare key?", "Odile."],
      ["What is the vet called?", "Dr. Marti."],
      ["When does the library close?", "At seven."],
      ["On which day is the market?", "Saturday."],
      ["What is the dentist called?", "Dr. Keller."],
    ] as const
  ).map(([question, answer], n): Case => ({ ...moving(n), kind: "rule", name: `rule ${n}`, question, answer })),
  ...(
    [
      ["What is Ada's dog called?", "Pim."],
      ["What does Ada drive?", "A green van."],
      ["Where does Clara live?", "Basel."],
      ["What is Ada allergic to?", "Walnuts."],
      ["What is Ada's boat called?", "Heron."],
      ["When is Ada's birthday?", "In October."],
    ] as const
  ).map(([question, answer], n): Case => ({ ...moving(n), kind: "memory", name: `memory ${n}`, question, answer })),
];

/** All three change. */
function moving(n: number): Pick<Case, "lines"> {
  const lines = [0, 1, 2].map((turn) => [
    `Today is ${DAYS[(n + turn) % 7]}, ${5 + n + turn} May.`,
    `Tokens left: ${8_000 - 1_210 * turn}.`,
    ...listOf(TASKS.slice(turn, 3)),
  ]);
  return { lines };
}

const SMALL_TALK = [
  ["Good morning. Anything new?", "Nothing new so far."],
  ["Thank you. I will be out for a while.", "All right, see you later."],
] as const;

const measured = z.object({
  kind: z.enum(KINDS),
  name: z.string(),
  answerTokens: z.int(),
  off: z.number(),
  on: z.number(),
});
type Measured = z.output<typeof measured>;

/** A conversation's prompts, turn by turn, as memprefix composes them. */
async function promptsOf(
  isStable: boolean,
  turns: readonly { readonly system: string; readonly question: string; readonly answer: string }[],
  found = (turn: number): readonly string[] => MEMORIES.slice(0, 4 + 2 * turn),
): Promise<readonly (readonly ChatMessage[])[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "memprefix-bench-"));
  const settings = readSettings({
    MEMPREFIX_DATA_DIR: dataDir,
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_STABLE_INSTRUCTIONS: isStable ? "on" : "off",
  });
  const { memprefix } = await assembleWhereStored(settings, { source: null });
  const said: { role: string; content: string }[] = [];
  const prompts: (readonly ChatMessage[])[] = [];
  try {
    for (const [turn, { system, question, answer }] of turns.entries()) {
      said.push({ role: "user", content: question });
      const memories = found(turn).map((memory) => ({ id: memory, memory }));
      const asked = { userId: "ada", conversationId: "c-1", system, messages: said, memories };
      prompts.push((await memprefix.compose(readComposeOptions(asked))).messages);
      said.push({ role: "assistant", content: answer });
    }
  } finally {
    await memprefix.close();
    rmSync(dataDir, { recursive: true });
  }
  return prompts;
}

async function measure(url: string, { kind, name, lines, question, answer }: Case): Promise<Measured> {
  const turns = lines.map((own, turn) => ({
    system: [...RULES, ...own].join("\n"),
    question: SMALL_TALK[turn]?.[0] ?? question,
    answer: SMALL_TALK[turn]?.[1] ?? answer,
  }));
  const natsOf = async (isStable: boolean) => {
    const prompt = (await promptsOf(isStable, turns)).at(-1) ?? [];
    return (await likelihoodOn({ url, model }, prompt, answer)).likelihood;
  };
  const [off, on] = [await natsOf(false), await natsOf(true)];
  return { kind, name, answerTokens: off.tokens, off: off.nats, on: on.nats };
}

const usage = z.looseObject({
  usage: z.looseObject({
    prompt_tokens: z.int(),
    prompt_tokens_details: z.looseObject({ cached_tokens: z.int().nullish() }).nullish(),
  }),
});

/** Tokens that vLLM computes of 12 turns. */
async function computedOn(
  url: string,
  isStable: boolean,
  clockOf: (turn: number) => readonly string[],
): Promise<number> {
  const turns = Array.from({ length: 12 }, (_, turn) => ({
    system: [...RULES, ...RULES.map((rule) => `Again: ${rule}`), ...clockOf(turn)].join("\n"),
    question: `Question ${turn}: which of the things that we spoke of yesterday in the garden should I tell Bruno first, and which of them can wait until he is here again next month?`,
    answer: `Answer ${turn}: ${"Tell him of the gate first, because it does not close any more, and of the roses after that. ".repeat(4)}`,
  }));
  let computed = 0;
  const salt = `${isStable} ${clockOf(0)}`;
  // As in recorded conversations, about half of twenty memories are new at each turn.
  const found = (turn: number) =>
    Array.from(
      { length: 20 },
      (_, n) => `Ada noted on visit ${10 * turn + n} that plot ${7 * (10 * turn + n)} has a fence and a well.`,
    );
  for (const messages of await promptsOf(isStable, turns, found)) {
    const body = JSON.stringify({ model, messages, max_tokens: 1, cache_salt: salt });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/chat/completions`, { method: "POST", headers, body });
    const { prompt_tokens: all, prompt_tokens_details: details } = usage.parse(await answer.json()).usage;
    computed += all - (details?.cached_tokens ?? 0);
  }
  return computed;
}

function report(all: readonly Measured[]): void {
  console.log(
    `${model}; nats a token of the right answer, with the first text and what changed against the current text\n`,
  );
  printHead(["question about", "cases", "off", "on", "difference"]);
  for (const kind of [...KINDS, "all"] as const) {
    const those = all.filter((one) => kind === "all" || one.kind === kind);
    const perToken = (arm: "off" | "on") => those.map((one) => one[arm] / one.answerTokens);
    const [off, on] = [perToken("off"), perToken("on")];
    const differences = on.map((nats, at) => nats - (off[at] ?? 0));
    printRow([kind, those.length, mean(off).toFixed(3), mean(on).toFixed(3), meanWithInterval(differences)]);
  }
}

/** Counts what vLLM computes of the conversation with a clock. Layers change the time that it takes, not its tokens. */
async function reportClock(): Promise<void> {
  await installAll();
  const engine = await serving({ engine: "vllm", model, layers: 2 });
  const clock = (turn: number) => [`Current time: 10:${10 + turn}`];
  const base = await computedOn(engine.url, false, () => []);
  const tokens = {
    "a clock, off": await computedOn(engine.url, false, clock),
    "a clock, on": await computedOn(engine.url, true, clock),
  };
  await engine.kill();
  console.log(`no clock: ${base} tokens computed`);
  for (const [arm, computed] of Object.entries(tokens))
    console.log(`${arm}: ${computed} tokens computed, ${percent(computed / base - 1)}`);
}

await reportClock();
const records = new KeptRecords(env["OUT"], measured, ({ name }) => name);
const missing = CASES.filter(({ name }) => !records.has(name));
await records.complete(missing, { model, contextTokens: 8_192 }, measure);
report(records.all);
