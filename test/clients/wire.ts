import { z } from "zod";

/** Tokens of a prompt: all, and those that the engine had in its cache. */
export interface Counted {
  readonly prompt: number;
  readonly cached: number;
}

const parts = z.array(z.looseObject({ text: z.string().catch("") })).catch([]);

/** The text of a message's content, in whatever form an API has it. */
export function partsText(content: unknown): string {
  if (typeof content === "string") return content;
  return parts
    .parse(content)
    .map(({ text }) => text)
    .join("");
}
