/**
 * `npm run bench:spans -- --data FILE`: what references in place of repeated parts of tools' results save, and what they cost in answers. `FILE`
 * is LoCoMo's public file. For each question an agent reads half a page of the chat that holds the evidence, and later a part of the same
 * length that overlaps it by half, as agents read files again; then comes the question. How likely the right answer is with both results
 * whole, and with `dedupe: "spans"`, on vLLM; once with the evidence in what both have, and once in what only the first has (there nothing
 * that was said is missing behind the reference). `QUESTIONS=40` of each conversation, `MODEL=smol`. `npm run engines` installs what it starts.
 *
 * Floor of what is sent: everything once.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type ChatMessage, withSpanReferences } from "../src/core/index.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import { type DialogueTurn, type LocomoConversation, readLocomo } from "../src/eval/locomo/locomo-data.js";
import { installAll } from "../test/real-engines/install.js";
import { MODELS } from "../test/real-engines/packages.js";
import { serving } from "../test/real-engines/serving.js";
import { answerLikelihood, meanWithInterval } from "./answer-likelihood.js";
import { seeded } from "./seeded.js";

const { env } = process;
const LIMIT = Number(env["QUESTIONS"] ?? 40);
const model = MODELS.find((name) => name === (env["MODEL"] ?? "smol")) ?? "smol";
/** Turns of the chat that a tool's result has. */
const READ = 20;
const PLACES = { "in both": 0.75, "in the first alone": 0.25 } as const;
type Place = keyof typeof PLACES;

const { data } = parseArgs({ options: { data: { type: "string" } } }).values;
if (data === undefined) throw new Error("--data FILE is missing: LoCoMo's public file");
const asked = readLocomo(JSON.parse(readFileSync(data, "utf8"))).flatMap((conversation, at) => {
  const random = seeded(at + 1);
  return conversation.questions
    .map((question) => ({ conversation, question, order: random() }))
    .filter(({ question }) => question.answer !== null && placeOf(conversation, question.evidence) !== null)
    .sort((a, b) => a.order - b.order)
    .slice(0, LIMIT);
});

await installAll();
const engine = await serving({ engine: "vllm", model, contextTokens: 8_192 });
try {
  console.log(
    `${model}, ${asked.length} questions; nats a token of the right answer, by references against whole results\n`,
  );
  console.log(
    "| evidence | tokens, whole | with references | nats, whole | difference |\n| --- | --: | --: | --: | --: |",
  );
  for (const place of Object.keys(PLACES) as Place[]) await compare(place);
} finally {
  await engine.kill();
}

async function compare(place: Place): Promise<void> {
  const of = { url: engine.url, model };
  const [whole, shorter, differences, nats]: number[][] = [[], [], [], []];
  for (const { conversation, question } of asked) {
    const messages = readTwice(conversation, question, place);
    const answer = String(question.answer);
    const before = await answerLikelihood(of, messages, answer);
    const after = await answerLikelihood(of, withSpanReferences(messages), answer);
    whole?.push(before.promptTokens);
    shorter?.push(after.promptTokens);
    nats?.push(before.nats / before.answerTokens);
    differences?.push((after.nats - before.nats) / before.answerTokens);
  }
  const mean = (values: readonly number[] = []) => values.reduce((sum, one) => sum + one, 0) / values.length;
  const tokens = [whole, shorter].map((each) => mean(each).toFixed(0));
  console.log(`| ${[place, ...tokens, mean(nats).toFixed(3), meanWithInterval(differences ?? [])].join(" | ")} |`);
}

/** Where in its conversation a question's first evidence is; null where it has none, or none with enough around it. */
function placeOf({ turns }: LocomoConversation, evidence: readonly string[]): number | null {
  const at = turns.findIndex(({ id }) => evidence.includes(id));
  return at < READ || at >= turns.length - 2 * READ ? null : at;
}

/** A conversation in which a chat is read twice, with its evidence so far into the first part. */
function readTwice(
  conversation: LocomoConversation,
  { question, evidence }: { readonly question: string; readonly evidence: readonly string[] },
  place: Place,
): readonly ChatMessage[] {
  const from = (placeOf(conversation, evidence) ?? 0) - Math.floor(PLACES[place] * READ);
  const read = (first: number, id: string): readonly ChatMessage[] => {
    const lines = conversation.turns.slice(first, first + READ).map(lineOf);
    return [
      { role: "user", content: `Read from line ${first} on.` },
      { role: "assistant", content: "Reading." },
      { role: "tool", tool_call_id: id, content: lines.join("\n") },
      { role: "assistant", content: "I have read it." },
    ];
  };
  return [
    { role: "system", content: INSTRUCTION },
    ...read(from, "c1"),
    ...read(from + READ / 2, "c2"),
    { role: "user", content: question },
  ];
}

function lineOf({ speaker, text, sessionTime }: DialogueTurn): string {
  return `[${sessionTime}] ${speaker}: ${text.replace(/\s+/g, " ")}`;
}
