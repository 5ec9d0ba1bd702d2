/**
 * `npm run bench -- annotations --data FOLDER`: what ContextPilot's annotations do to answers: how likely the right answer is on vLLM with no
 * annotations, with memprefix's line, and with the paper's (`annotations: "paper"`), for questions of six LoCoMo conversations with recorded
 * real Mem0 searches (`recorded-data.ts`).
 *
 * `order`: single prompts of the policy `context-pilot`, k = 15, after the five searches before were composed, so that blocks move. `references`:
 * the second turn of a conversation whose first turn was the question before, with its right answer; both retrieve 15. `QUESTIONS=50` of each
 * conversation, `MODEL=smol`; `OUT=FILE` keeps what was measured, and a run goes on from there. `npm run engines` installs what it starts.
 *
 * Floor: `none`, the paired baseline; above 0 is worse.
 */
import { z } from "zod";
import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { type ChatMessage, DEFAULT_ENGINE_MODEL, ENGINE_MODELS } from "../src/core/index.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { MODELS } from "../test/real-engines/packages.js";
import { likelihoodOn } from "./answer-likelihood.js";
import { KeptRecords } from "./kept-records.js";
import { neededData } from "./recorded-data.js";
import { drawnInTurn } from "./seeded.js";
import { mean, meanWithInterval } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const { env } = process;
const LIMIT = Number(env["QUESTIONS"] ?? 50);
const model = MODELS.find((name) => name === (env["MODEL"] ?? "smol")) ?? "smol";
const [K, BEFORE] = [15, 5];
const ARMS = { none: false, memprefix: true, paper: "paper" } as const;
const NAMES = ["none", "memprefix", "paper"] as const;
const KINDS = ["order", "references"] as const;

const arm = z.object({ tokens: z.int(), nats: z.number() });
const measured = z.object({
  kind: z.enum(KINDS),
  conversation: z.enum(RECORDED_CONVERSATIONS),
  question: z.int(),
  answerTokens: z.int(),
  none: arm,
  memprefix: arm,
  paper: arm,
});
type Measured = z.output<typeof measured>;
type Place = Pick<Measured, "kind" | "conversation" | "question">;

const data = neededData();
const keyOf = ({ kind, conversation, question }: Place) => `${kind} ${conversation} ${question}`;
const records = new KeptRecords(env["OUT"], measured, keyOf);
const missing = places().filter((place) => !records.has(keyOf(place)));
await records.complete(missing, { model, contextTokens: 4_096 }, measure);
report(records.all);

function places(): readonly Place[] {
  const questions = RECORDED_CONVERSATIONS.map((conversation) =>
    readRecordedTrace(data, conversation).questions.map(({ answer }, question) => ({ conversation, question, answer })),
  );
  const isUsable = ({ answer, question }: { answer?: unknown; question: number }) =>
    typeof answer === "string" && question >= BEFORE;
  return drawnInTurn(questions, LIMIT, isUsable).flatMap(({ conversation, question }) =>
    KINDS.map((kind) => ({ kind, conversation, question })),
  );
}

async function promptOf({ kind, conversation, question }: Place, annotations: boolean | "paper") {
  const { memories, questions } = readRecordedTrace(data, conversation);
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => 0);
  const compose = async (at: number, history: readonly ChatMessage[]) => {
    const asked = questions[at];
    const found = (asked?.retrieved ?? [])
      .slice(0, K)
      .map((id) => ({ id: `m${id}`, memory: memories[id]?.memory ?? "" }));
    const messages = [...history, { role: "user", content: asked?.question ?? "" }];
    const options = { userId: "reader", messages, memories: found, annotations, policy: "context-pilot" } as const;
    const ofTurns = kind === "references" ? { conversationId: "c", retention: "keep" as const } : {};
    return memprefix.compose(readComposeOptions({ ...options, ...ofTurns }));
  };
  const system = { role: "system", content: INSTRUCTION };
  const first = kind === "order" ? question - BEFORE : question - 1;
  const history: ChatMessage[] = [system];
  for (let at = first; at < question; at++) {
    await compose(at, history);
    if (kind === "order") continue;
    const { question: asked, answer } = questions[at] as (typeof questions)[number];
    history.push({ role: "user", content: asked }, { role: "assistant", content: String(answer ?? "I don't know.") });
  }
  const { messages } = await compose(question, history);
  await memprefix.close();
  return messages;
}

async function measure(url: string, place: Place): Promise<Measured> {
  const answer = String(readRecordedTrace(data, place.conversation).questions[place.question]?.answer);
  const arms: Partial<Record<(typeof NAMES)[number], z.output<typeof arm>>> = {};
  let answerTokens = 0;
  for (const name of NAMES) {
    const { promptTokens, likelihood } = await likelihoodOn({ url, model }, await promptOf(place, ARMS[name]), answer);
    arms[name] = { tokens: promptTokens, nats: likelihood.nats };
    answerTokens = likelihood.tokens;
  }
  return measured.parse({ ...place, answerTokens, ...arms });
}

function report(all: readonly Measured[]): void {
  printHead(["", "questions", "annotations", "tokens", "nats a token, against none"]);
  for (const kind of KINDS) {
    const of = all.filter((one) => one.kind === kind);
    for (const name of NAMES) {
      const differences = of.map((one) => (one[name].nats - one.none.nats) / one.answerTokens);
      const tokens = mean(of.map((one) => one[name].tokens)).toFixed(0);
      printRow([kind, of.length, name, tokens, name === "none" ? "" : meanWithInterval(differences)]);
    }
  }
}
