import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { writeWhole } from "../eval/base/durable-files.js";
import type { RunRecord } from "../eval/base/run-record.js";
import { type EvaluatedConversation, pickQuestions } from "../eval/locomo/evaluated-conversation.js";
import { NOTHING_EXCLUDED, readExclusions } from "../eval/locomo/exclusions.js";
import { type LocomoConversation, LocomoDataError, readLocomo } from "../eval/locomo/locomo-data.js";
import { makeDirectory } from "../store/database/make-directory.js";
import type { EvalLocomoOptions } from "./eval-options.js";

/** Where LoCoMo's authors publish it. */
const LOCOMO_URL = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json";
/** What the published file holds (`locomo10.json`): a shorter one is not all of it. */
const PUBLISHED = { conversations: 10, questions: 1_986 } as const;
const DOWNLOAD_MS = 120_000;
const WITH_DOWNLOAD = "`memstem eval locomo --data FILE --download` fetches the published one";

/** A data file that was read. */
interface DataFile {
  readonly sha256: string;
  readonly conversations: readonly LocomoConversation[];
}

/** The data of a run, and what of it is asked. */
export interface PickedData {
  readonly sha256: string;
  readonly conversations: readonly EvaluatedConversation[];
  /** What a list left out of these conversations; null without one. */
  readonly excluded: RunRecord["excluded"];
}

/** Reads a run's data and its list of exclusions; downloads the data first where that is wanted. Rejects with {@link LocomoDataError}. */
export async function pickedData(options: EvalLocomoOptions, signal: AbortSignal): Promise<PickedData> {
  const { data, download, conversations, categories, limit, exclude } = options;
  if (download !== undefined) await downloadData(data, download, signal);
  const file = readDataFile(data);
  const list = exclude === undefined ? null : readExclusionFile(exclude, file.conversations);
  const picked = pickQuestions(file.conversations, {
    conversations: conversations ?? null,
    categories,
    limit: limit ?? null,
    excluded: list?.exclusions ?? NOTHING_EXCLUDED,
  });
  const excluded =
    list === null ? null : { file: basename(list.path), sha256: list.sha256, questions: picked.excludedQuestions };
  return { sha256: file.sha256, conversations: picked.conversations, excluded };
}

function readExclusionFile(path: string, conversations: readonly LocomoConversation[]) {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new LocomoDataError(`--exclude ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { path, sha256, exclusions: readExclusions(path, bytes.toString("utf8"), conversations) };
}

/** Reads a file in LoCoMo's format. Throws {@link LocomoDataError}. */
function readDataFile(path: string): DataFile {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const why = existsSync(path) ? reason : `there is no such file; ${WITH_DOWNLOAD}`;
    throw new LocomoDataError(`cannot read ${path}: ${why}`);
  }
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { sha256, conversations: readLocomo(parsed(path, bytes.toString("utf8"))) };
}

/**
 * Fetches the published LoCoMo file; an existing one is checked instead. Rejects with {@link LocomoDataError} where
 * the download fails or is incomplete; nothing is written then.
 */
async function downloadData(path: string, from: string | true, signal: AbortSignal): Promise<void> {
  const url = from === true ? LOCOMO_URL : from;
  if (existsSync(path)) {
    checkPublished(path, readDataFile(path).conversations);
    return;
  }
  const fail = (why: string) => new LocomoDataError(`cannot download ${url}: ${why}`);
  let text: string;
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_MS)]) });
    if (!response.ok) throw fail(`it answered with status ${response.status}`);
    text = await response.text();
  } catch (error) {
    if (error instanceof LocomoDataError) throw error;
    throw fail(reasonOf(error));
  }
  checkPublished(url, readLocomo(parsed(url, text)));
  makeDirectory(dirname(path));
  writeWhole(path, text);
}

function checkPublished(name: string, conversations: readonly LocomoConversation[]): void {
  const questions = conversations.reduce((sum, conversation) => sum + conversation.questions.length, 0);
  if (conversations.length === PUBLISHED.conversations && questions === PUBLISHED.questions) return;
  throw new LocomoDataError(
    `${name} is not the published file: it has ${conversations.length} conversations and ${questions} questions, ` +
      `which should be ${PUBLISHED.conversations} and ${PUBLISHED.questions}`,
  );
}

function parsed(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new LocomoDataError(`${name} is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** `fetch` hides why it failed one level down. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
