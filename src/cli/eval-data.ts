import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "../core/text/thrown.js";
import { EvaluationError, writeWhole } from "../eval/base/run-files.js";
import type { Dataset } from "../eval/base/run-record.js";
import {
  type EvaluatedConversation,
  type LocomoConversation,
  pickQuestions,
  readLocomo,
} from "../eval/locomo/locomo-data.js";
import { readLongMemEval } from "../eval/locomo/longmemeval-data.js";
import { makeDirectory } from "./data-directory.js";
import type { EvalLocomoOptions } from "./eval-options.js";

/** Where a data set is published, the size of the published file (a shorter one is incomplete), and how it is read. */
interface Source {
  readonly url: string;
  readonly conversations: number;
  readonly questions: number;
  readonly downloadMs: number;
  readonly read: (json: unknown) => LocomoConversation[];
}

const SOURCES: Readonly<Record<Dataset, Source>> = {
  locomo: {
    url: "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
    conversations: 10,
    questions: 1_986,
    downloadMs: 120_000,
    read: readLocomo,
  },
  // The corrected form of `longmemeval_s.json`; some 270 MB.
  longmemeval: {
    url: "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_s_cleaned.json",
    conversations: 500,
    questions: 500,
    downloadMs: 3_600_000,
    read: readLongMemEval,
  },
};

interface DataFile {
  readonly sha256: string;
  readonly conversations: readonly LocomoConversation[];
}

/** The data of a run, and its selected questions. */
export interface PickedData {
  readonly sha256: string;
  readonly conversations: readonly EvaluatedConversation[];
}

/** Reads a run's data, after downloading it if requested. Rejects with {@link EvaluationError}. */
export async function pickedData(options: EvalLocomoOptions, signal: AbortSignal): Promise<PickedData> {
  const { dataset, data, download, conversations = null, categories, limit = null } = options;
  if (download !== undefined) await downloadData(dataset, data, download, signal);
  const file = readDataFile(dataset, data);
  const skips = dataset === "longmemeval";
  const picked = pickQuestions(file.conversations, { conversations, categories, limit, skips });
  // A conversation of LongMemEval is a question.
  return { sha256: file.sha256, conversations: skips ? picked.slice(0, limit ?? undefined) : picked };
}

/** Throws {@link EvaluationError}. */
function readDataFile(dataset: Dataset, path: string): DataFile {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const reason = messageOf(error);
    const why = existsSync(path)
      ? reason
      : `there is no such file; \`memprefix eval ${dataset} --data FILE --download\` fetches the published one`;
    throw new EvaluationError(`cannot read ${path}: ${why}`);
  }
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { sha256, conversations: SOURCES[dataset].read(parsed(path, bytes.toString("utf8"))) };
}

/**
 * Downloads the published file, or checks an existing one. Rejects with {@link EvaluationError} where the download fails or is incomplete;
 * nothing is written then.
 */
async function downloadData(dataset: Dataset, path: string, from: string | true, signal: AbortSignal): Promise<void> {
  const source = SOURCES[dataset];
  const url = from === true ? source.url : from;
  if (existsSync(path)) {
    checkPublished(source, path, readDataFile(dataset, path).conversations);
    return;
  }
  const fail = (why: string) => new EvaluationError(`cannot download ${url}: ${why}`);
  let text: string;
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(source.downloadMs)]) });
    if (!response.ok) throw fail(`it answered with status ${response.status}`);
    text = await response.text();
  } catch (error) {
    if (error instanceof EvaluationError) throw error;
    throw fail(reasonOf(error));
  }
  checkPublished(source, url, source.read(parsed(url, text)));
  makeDirectory(dirname(path));
  writeWhole(path, text);
}

function checkPublished(published: Source, name: string, conversations: readonly LocomoConversation[]): void {
  const questions = conversations.reduce((sum, conversation) => sum + conversation.questions.length, 0);
  if (conversations.length === published.conversations && questions === published.questions) return;
  throw new EvaluationError(
    `${name} is not the published file: it has ${conversations.length} conversations and ${questions} questions, ` +
      `which should be ${published.conversations} and ${published.questions}`,
  );
}

function parsed(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new EvaluationError(`${name} is no JSON: ${messageOf(error)}`);
  }
}

/** `fetch` puts the reason into the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
