import type { Ended } from "../cli/launch.js";
import { type Choices, type Forgotten, isForgetful, marksIn } from "./actors.js";
import { type Answered, type Answers, ask, type Body, GONE, type Services } from "./answers.js";
import { BATCHED, TALKERS } from "./cast.js";

/** Older answers that are asked for again after each kill, beside those since the one before. */
const SAMPLE = 150;
const ASKED_AT_ONCE = 12;
/** Milliseconds for which an answer is asked for again: a busy server may hold the locks of a killed instance until its session ends. */
const PATIENCE_MS = 10_000;
const AGAIN_MS = 100;

/**
 * Asks for answers again, after the last kill for all, and before it for the new ones and some others: each has to come back as it was;
 * where a memory of it was forgotten since, without that. Gives how many. Rejects with the first that is not.
 */
export async function repeatAnswers(
  services: Services,
  answers: Answers,
  forgotten: Forgotten,
  sampledBy: Choices | null,
): Promise<number> {
  const again = sampledBy === null ? answers.all() : [...answers.fresh, ...sampleOf(answers.all(), sampledBy)];
  const left = [...again];
  const one = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await repeat(services, next, forgotten);
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, one));
  answers.fresh.length = 0;
  return again.length;
}

async function repeat(services: Services, { body, text }: Answered, { gone, going }: Forgotten): Promise<void> {
  const again = await answered(services, body);
  const isTouched = isForgetful(body.user_id) && [...marksIn(text)].some((name) => going.has(name));
  const told = [...marksIn(again)].filter((name) => gone.has(name));
  if (told.length > 0) throw new Error(`${body.request_id} tells ${told}, which was forgotten`);
  if (!isTouched && again !== text) throw new Error(`${body.request_id} came back changed:\n${text}\n${again}`);
}

async function answered(services: Services, body: Body): Promise<string> {
  for (const began = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))) {
    const text = await ask(services, "POST", "/compose", body);
    if (text !== GONE) return text;
    if (performance.now() - began > PATIENCE_MS) throw new Error("the service died by itself, or answers nobody");
  }
}

/** One text for a label, one label for a text, whatever was killed in between. Throws where that is not so. */
export function checkLabels(answers: Answers): void {
  for (const user of [...TALKERS, ...BATCHED]) {
    const texts = answers.textsByLabel(user);
    const distinct = new Set([...texts.values()].flatMap((ofLabel) => [...ofLabel]));
    if ([...texts.values()].some((ofLabel) => ofLabel.size > 1)) throw new Error(`${user}: a label with two texts`);
    if (distinct.size !== texts.size) throw new Error(`${user}: a text with two labels`);
  }
}

function sampleOf(answered: readonly Answered[], choices: Choices): Answered[] {
  const chosen = new Set<Answered>();
  for (let n = 0; n < SAMPLE && answered.length > 0; n++)
    chosen.add(answered[choices.pick(answered.length)] as Answered);
  return [...chosen];
}

/** Throws where a service ended otherwise than by being killed, or said something that was not expected. */
export function checkKilled(
  { signal, code, stderr }: Ended,
  isExpected: (line: string) => boolean = () => false,
): void {
  const lines = stderr.split("\n").filter((line) => line !== "" && !isExpected(line));
  if (signal !== "SIGKILL" || lines.length > 0)
    throw new Error(`the service ended with ${signal ?? code}: ${lines.join("\n")}`);
}

export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1));
}
