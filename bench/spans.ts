/**
 * `npm run bench -- spans --data FILE`: what references in place of repeated parts of tools' results save, and what they cost in answers. `FILE`
 * is LoCoMo's public file. For each question an agent reads half a page of the chat that holds the evidence, and later a part of the same
 * length that overlaps it by half, as agents read files again; then comes the question. How likely the right answer is with both results
 * whole, and with `dedupe: "spans"`, on vLLM; once with the evidence in what both have, and once in what only the first has (there nothing
 * that was said is missing after the reference). `QUESTIONS=40` of each conversation (some 25 s each on two cores), `MODEL=smol`;
 * `OUT=FILE` keeps what was measured, and a run goes on from there. `npm run engines` installs what it starts.
 *
 * Floor of what is sent: everything once.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { type ChatMessage, withSpanReferences } from "../src/core/index.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import {
  type DialogueTurn,
  type LocomoConversation,
  type Question,
  readLocomo,
} from "../src/eval/locomo/locomo-data.js";
import { MODELS } from "../test/real-engines/packages.js";
import { likelihoodOn } from "./answer-likelihood.js";
import { KeptRecords } from "./kept-records.js";
import { neededPath } from "./recorded-data.js";
import { drawnInTurn } from "./seeded.js";
import { mean, meanWithInterval } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const { env } = process;
const LIMIT = Number(env["QUESTIONS"] ?? 40);
const model = MODELS.find((name) => name === (env["MODEL"] ?? "smol")) ?? "smol";
/** Turns of the chat that a tool's result has. */
const READ = 20;
/** Where the evidence is, and how far into the first result. */
const PLACES = ["in both", "in the first alone"] as const;
type Place = (typeof PLACES)[number];
const INTO: Readonly<Record<Place, number>> = { "in both": 0.75, "in the first alone": 0.25 };

const measured = z.object({
  place: z.enum(PLACES),
  conversation: z.string(),
  question: z.string(),
  answerTokens: z.int(),
  /** Tokens of the prompt and −ln p of the answer, with whole results and with references. */
  whole: z.object({ tokens: z.int(), nats: z.number() }),
  shorter: z.object({ tokens: z.int(), nats: z.number() }),
});
type Measured = z.output<typeof measured>;

const data = neededPath("data", "LoCoMo's public file");
const records = new KeptRecords(env["OUT"], measured, keyOf);
const missing = askedInTurn(readLocomo(JSON.parse(readFileSync(data, "utf8")))).filter(
  ({ place, conversation, question }) =>
    !records.has(keyOf({ place, conversation: conversation.id, question: question.question })),
);
await records.complete(missing, { model, contextTokens: 8_192 }, measure);
report(records.all);

function keyOf({ place, conversation, question }: Pick<Measured, "place" | "conversation" | "question">): string {
  return JSON.stringify([place, conversation, question]);
}

interface Asked {
  readonly place: Place;
  readonly conversation: LocomoConversation;
  readonly question: Question;
}

/** So many questions of each conversation, one of each in turn. */
function askedInTurn(conversations: readonly LocomoConversation[]): Asked[] {
  const questions = conversations.map((conversation) =>
    conversation.questions.map((question) => ({ conversation, question })),
  );
  const isWanted = ({ conversation, question: { answer, evidence } }: Omit<Asked, "place">) =>
    answer !== null && placeOf(conversation, evidence) !== null;
  return drawnInTurn(questions, LIMIT, isWanted).flatMap((one) => PLACES.map((place) => ({ ...one, place })));
}

async function measure(url: string, { place, conversation, question }: Asked): Promise<Measured> {
  const messages = readTwice(conversation, question, place);
  const said = (prompt: readonly ChatMessage[]) => likelihoodOn({ url, model }, prompt, String(question.answer));
  const [whole, shorter] = [await said(messages), await said(withSpanReferences(messages))];
  return {
    ...{ place, conversation: conversation.id, question: question.question, answerTokens: whole.likelihood.tokens },
    whole: { tokens: whole.promptTokens, nats: whole.likelihood.nats },
    shorter: { tokens: shorter.promptTokens, nats: shorter.likelihood.nats },
  };
}

function report(all: readonly Measured[]): void {
  console.log(`${model}; nats a token of the right answer, with references against whole results\n`);
  printHead(["evidence", "questions", "tokens, whole", "with references", "nats, whole", "difference"]);
  for (const place of PLACES) {
    const those = all.filter((one) => one.place === place);
    const cells = [
      mean(those.map(({ whole }) => whole.tokens)).toFixed(0),
      mean(those.map(({ shorter }) => shorter.tokens)).toFixed(0),
      mean(those.map(({ whole, answerTokens }) => whole.nats / answerTokens)).toFixed(3),
      meanWithInterval(those.map(({ whole, shorter, answerTokens }) => (shorter.nats - whole.nats) / answerTokens)),
    ];
    printRow([place, those.length, ...cells]);
  }
}

/** Where in its conversation a question's first evidence is; null where it has none, or none with enough around it. */
function placeOf({ turns }: LocomoConversation, evidence: readonly string[]): number | null {
  const at = turns.findIndex(({ id }) => evidence.includes(id));
  return at < READ || at >= turns.length - 2 * READ ? null : at;
}

/** A conversation in which a chat is read twice, with its evidence so far into the first part. */
function readTwice(
  conversation: LocomoConversation,
  { question, evidence }: Question,
  place: Place,
): readonly ChatMessage[] {
  const from = (placeOf(conversation, evidence) ?? 0) - Math.floor(INTO[place] * READ);
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
