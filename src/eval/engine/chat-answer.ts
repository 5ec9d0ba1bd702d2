import { z } from "zod";

/*
 * What an OpenAI-compatible API answers, as far as an evaluation reads it. Tolerant: other fields are let be.
 */

const MAX_QUOTED = 300;

const failure = z.looseObject({ error: z.union([z.string(), z.looseObject({ message: z.string() })]) });
const whole = z.looseObject({
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string().nullish() }) })).min(1),
});
const chunk = z.looseObject({
  choices: z.array(
    z.looseObject({
      delta: z
        .looseObject({
          content: z.string().nullish(),
          reasoning_content: z.string().nullish(),
          reasoning: z.string().nullish(),
        })
        .nullish(),
      finish_reason: z.string().nullish(),
    }),
  ),
});

/** What an engine says went wrong, cut short; null where it says nothing of the kind. */
export function readErrorMessage(answer: unknown): string | null {
  const read = failure.safeParse(answer);
  if (!read.success) return null;
  const { error } = read.data;
  return (typeof error === "string" ? error : error.message).slice(0, MAX_QUOTED);
}

/** The text of an answer that was not streamed; null where it is none. */
export function readWholeAnswer(answer: unknown): string | null {
  const read = whole.safeParse(answer);
  return read.success ? (read.data.choices[0]?.message.content ?? "") : null;
}

/** One piece of a streamed answer. */
export interface AnswerDelta {
  readonly text: string;
  /** Whether a token came with it: text, or what the model thinks before it. */
  readonly begins: boolean;
  readonly ends: boolean;
}

export function readDelta(event: unknown): AnswerDelta {
  const read = chunk.safeParse(event);
  const choice = read.success ? read.data.choices[0] : undefined;
  const text = choice?.delta?.content ?? "";
  const thought = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning ?? "";
  return { text, begins: text !== "" || thought !== "", ends: typeof choice?.finish_reason === "string" };
}
