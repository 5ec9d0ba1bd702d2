import { z } from "zod";
import { memoryTextProblem } from "../core/text/storable-text.js";
import { MemorySourceError } from "./memory-source.js";

/** How to reach a Mem0 service, as both kinds of service are configured. */
export interface Mem0Service {
  /** Absolute, without a slash at the end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Least similarity, 0 to 1; absent: Mem0's own default (0.1). */
  readonly threshold: number | undefined;
}

/**
 * A key goes into a header: anything but printable ASCII would make `fetch` throw an error that quotes it. Messages here never do.
 */
const apiKey = z.string().regex(/^[!-~]+$/, "must be printable ASCII without spaces");

const url = z
  .url({ protocol: /^https?$/, error: "must be an absolute http or https URL" })
  .refine((text) => {
    const { username, password, search, hash } = new URL(text);
    return `${username}${password}${search}${hash}` === "";
  }, "must have no credentials, query or fragment")
  .transform((text) => text.replace(/\/+$/, ""));

/** Least similarity of a memory to the query, as Mem0 takes it. */
export const similarityThreshold = z.number().min(0).max(1).optional();

const service = z.object({ url, apiKey: apiKey.optional(), threshold: similarityThreshold });

/** Checks how a Mem0 service is configured; throws a `TypeError` that says which setting is wrong and quotes none of them. */
export function checkedService(settings: {
  readonly url: string;
  readonly apiKey?: string | undefined;
  readonly threshold?: number | undefined;
}): Mem0Service {
  const checked = service.safeParse(settings);
  if (!checked.success) {
    throw new TypeError(checked.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "));
  }
  return { url: checked.data.url, apiKey: checked.data.apiKey, threshold: checked.data.threshold };
}

/** Throws {@link MemorySourceError} `unsupported` for a text that cannot be a memory. */
export function checkMemoryText(source: string, text: string): void {
  const problem = memoryTextProblem(text);
  if (problem !== null) {
    throw new MemorySourceError(source, { kind: "unsupported", operation: `keep a memory: its text ${problem}` });
  }
}
