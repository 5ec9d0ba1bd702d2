import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { parsedJson } from "../core/text/json.js";
import { messageOf } from "../core/text/thrown.js";
import { EvaluationError } from "../eval/base/run-files.js";
import type { Dataset } from "../eval/base/run-record.js";
import {
  type EvaluatedConversation,
  type LocomoConversation,
  pickQuestions,
  readLocomo,
} from "../eval/locomo/locomo-data.js";
import { readLongMemEval } from "../eval/locomo/longmemeval-data.js";
import type { EvalLocomoOptions } from "./eval-options.js";

/** Where a data set is published, and how its file is read. */
interface Source {
  readonly url: string;
  readonly read: (json: unknown) => LocomoConversation[];
}

const SOURCES: Readonly<Record<Dataset, Source>> = {
  locomo: { url: "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json", read: readLocomo },
  // The corrected form of `longmemeval_s.json`; some 270 MB.
  longmemeval: {
    url: "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_s_cleaned.json",
    read: readLongMemEval,
  },
};

/** The data of a run, and its selected questions. */
export interface PickedData {
  readonly sha256: string;
  readonly conversations: readonly EvaluatedConversation[];
}

/** Reads a run's data. Throws {@link EvaluationError}. */
export function pickedData(options: EvalLocomoOptions): PickedData {
  const { dataset, data, conversations: wanted = null, categories, limit = null } = options;
  const bytes = readData(dataset, data);
  const conversations = SOURCES[dataset].read(parsed(data, bytes.toString("utf8")));
  const picked = pickQuestions(conversations, { conversations: wanted, categories, limit });
  return {
    sha256: createHash("sha256").update(bytes).digest("hex"),
    // A conversation of LongMemEval is a question.
    conversations: dataset === "longmemeval" ? picked.slice(0, limit ?? undefined) : picked,
  };
}

/** Throws {@link EvaluationError}. */
function readData(dataset: Dataset, path: string): Buffer {
  if (!existsSync(path)) {
    const how = `\`curl -L -o ${path} ${SOURCES[dataset].url}\` downloads the published one`;
    throw new EvaluationError(`cannot read ${path}: there is no such file; ${how}`);
  }
  try {
    return readFileSync(path);
  } catch (error) {
    throw new EvaluationError(`cannot read ${path}: ${messageOf(error)}`);
  }
}

function parsed(path: string, text: string): unknown {
  const json = parsedJson(text);
  if (json === undefined) throw new EvaluationError(`${path} is not JSON`);
  return json;
}
