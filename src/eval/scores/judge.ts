import { z } from "zod";
import { openUpstream, type Upstream, UpstreamError, type UpstreamFailure } from "../../engines/upstream/upstream.js";
import type { Judgement } from "../base/run-record.js";
import { type JudgedAnswer, judgePrompt } from "./judge-prompt.js";
import { readVerdict } from "./judge-verdict.js";

/** Why a judge gave no judgement at all. */
export type JudgeFailure =
  | UpstreamFailure
  /** `body`: the first {@link REFUSAL_CHARACTERS} characters, without the key. */
  | { readonly kind: "refused"; readonly status: number; readonly body: string }
  /** It answered, but not with a chat completion. */
  | { readonly kind: "unreadable"; readonly cause: string };

/** A call to a judge failed. The message names the judge's address and holds no key, question or answer. */
export class JudgeError extends Error {
  override readonly name = "JudgeError";
  constructor(
    readonly judge: string,
    readonly failure: JudgeFailure,
  ) {
    super(`the judge at ${judge} ${describeFailure(failure)}`);
  }
}

function describeFailure(failure: JudgeFailure): string {
  switch (failure.kind) {
    case "refused":
      return `answered with status ${failure.status}`;
    case "timeout":
    case "stalled":
      return `did not answer within ${failure.afterMs} ms`;
    case "aborted":
      return "was not waited for any longer";
    case "unreachable":
      return `could not be reached: ${failure.cause}`;
    case "broken":
      return `broke off its answer: ${failure.cause}`;
    case "unreadable":
      return `gave no chat completion: ${failure.cause}`;
  }
}

/** Says whether answers are right. */
export interface Judge {
  /**
   * Asks once. What the judge says is kept whole; where no verdict can be read from it, `isCorrect` is null. Rejects with {@link JudgeError}
   * and nothing else.
   */
  judge(answer: JudgedAnswer, signal: AbortSignal): Promise<Judgement>;
}

export interface JudgeOptions {
  /** Base URL of an OpenAI-compatible API: `http://127.0.0.1:8000/v1`. */
  readonly url: string;
  readonly model: string;
  /** Goes as a bearer token. */
  readonly apiKey?: string | undefined;
  /** Milliseconds that a whole answer may take. */
  readonly timeoutMs: number;
}

const REFUSAL_CHARACTERS = 500;
/** A verdict is a word; this leaves room for a model that reasons aloud. */
const MAX_ANSWER_BYTES = 1024 * 1024;

const part = z.object({ type: z.string(), text: z.string().optional() });
const completion = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.union([z.string(), z.array(part)]).nullish() }) })).min(1),
});

/** A judge behind an OpenAI-compatible API, asked at temperature 0. Opens nothing yet. Throws a `TypeError` for what is no URL. */
export function openJudge({ url, model, apiKey, timeoutMs }: JudgeOptions): Judge {
  const upstream = openUpstream({ url, apiKey, timeoutMs });
  const fail = (failure: JudgeFailure) => new JudgeError(upstream.name, failure);
  return {
    judge: async (answer, signal) => {
      const prompt = judgePrompt(answer);
      const body = JSON.stringify({ model, temperature: 0, messages: [{ role: "user", content: prompt }] });
      const { status, text } = await ask(upstream, body, timeoutMs, signal);
      if (status < 200 || status > 299) {
        const shown = apiKey === undefined ? text : text.replaceAll(apiKey, "***");
        throw fail({ kind: "refused", status, body: shown.slice(0, REFUSAL_CHARACTERS) });
      }
      const raw = contentOf(text);
      if (raw === null) throw fail({ kind: "unreadable", cause: "its body is not of that shape" });
      return { isCorrect: readVerdict(raw), prompt, raw };
    },
  };
}

/** The whole answer as text. The upstream's own limit ends with the first byte; this one with the last. */
async function ask(
  upstream: Upstream,
  body: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await upstream.send(
      { method: "POST", path: "chat/completions", query: "", headers: [], body },
      AbortSignal.any([signal, deadline]),
    );
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const bytes of answer.body) {
      size += bytes.byteLength;
      if (size > MAX_ANSWER_BYTES) {
        throw new JudgeError(upstream.name, { kind: "unreadable", cause: `more than ${MAX_ANSWER_BYTES} bytes` });
      }
      parts.push(bytes);
    }
    return { status: answer.status, text: new TextDecoder().decode(Buffer.concat(parts)) };
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    const ended = error.failure.kind === "aborted" && !signal.aborted && deadline.aborted;
    throw new JudgeError(upstream.name, ended ? { kind: "timeout", afterMs: timeoutMs } : error.failure);
  }
}

/** What the model said, null where the body is no chat completion; an empty text where it said nothing (a refusal, a tool call). */
function contentOf(body: string): string | null {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return null;
  }
  const parsed = completion.safeParse(json);
  if (!parsed.success) return null;
  const content = parsed.data.choices[0]?.message.content ?? "";
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}
