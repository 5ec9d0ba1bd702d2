import { readFileSync } from "node:fs";
import { EvaluationError } from "../src/eval/base/run-files.js";
import { type LocomoConversation, readLocomo } from "../src/eval/locomo/locomo-data.js";
import { locomoFile, RECORDED_CONVERSATIONS } from "../test/eval/locomo/recorded-searches.js";
import { neededData } from "./recorded-data.js";

/** A question and its answer, with LoCoMo's ids of the turns that they are made of. */
export interface Exchange {
  readonly question: string;
  readonly answer: string;
  readonly turns: readonly string[];
}

/** One speaker asks, the other one answers. Several turns of one speaker in a row are one message. */
export function exchangesOf({ turns: said }: LocomoConversation): Exchange[] {
  const messages: { speaker: string; text: string; readonly turns: string[] }[] = [];
  for (const { id, speaker, text } of said) {
    const last = messages.at(-1);
    if (last?.speaker === speaker) {
      last.text += ` ${text}`;
      last.turns.push(id);
    } else messages.push({ speaker, text, turns: [id] });
  }
  return Array.from({ length: Math.floor(messages.length / 2) }, (_, at) => {
    const [question, answer] = messages.slice(2 * at, 2 * at + 2);
    return {
      question: question?.text ?? "",
      answer: answer?.text ?? "",
      turns: [...(question?.turns ?? []), ...(answer?.turns ?? [])],
    };
  });
}

/** The six conversations of `--data FOLDER` whose searches are recorded. */
export function neededConversations(): LocomoConversation[] {
  const file = locomoFile(neededData());
  if (file === null) throw new EvaluationError("--data: the folder has no locomo/*.json");
  return readLocomo(JSON.parse(readFileSync(file, "utf8"))).filter(({ id }) =>
    (RECORDED_CONVERSATIONS as readonly string[]).includes(id),
  );
}
