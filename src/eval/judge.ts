import { openUpstream } from "../engines/upstream.js";
import { readWholeAnswer } from "./chat-answer.js";
import type { Judgement } from "./run-record.js";

/** STAND-IN until the scores' own branch is merged. */
export interface Judge {
  judge(
    q: { readonly question: string; readonly gold: string; readonly answer: string },
    signal: AbortSignal,
  ): Promise<Judgement>;
}

export function openJudge(options: {
  readonly url: string;
  readonly model: string;
  readonly apiKey?: string;
  readonly timeoutMs: number;
}): Judge {
  const upstream = openUpstream(options);
  return {
    async judge({ question, gold, answer }, signal) {
      const prompt = `Question: ${question}\nGold answer: ${gold}\nAnswer: ${answer}\nCORRECT or WRONG?`;
      const body = JSON.stringify({ model: options.model, messages: [{ role: "user", content: prompt }] });
      const call = { method: "POST", path: "chat/completions", query: "", headers: [], body } as const;
      const response = await upstream.send(call, signal);
      const chunks: Uint8Array[] = [];
      for await (const bytes of response.body) chunks.push(bytes);
      if (response.status >= 400) throw new Error(`the judge answered with status ${response.status}`);
      const raw = readWholeAnswer(JSON.parse(Buffer.concat(chunks).toString("utf8"))) ?? "";
      return { isCorrect: /WRONG/.test(raw) ? false : /CORRECT/.test(raw) ? true : null, prompt, raw };
    },
  };
}
