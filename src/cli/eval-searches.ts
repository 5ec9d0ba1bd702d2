import type { Scope, UserId } from "../core/index.js";
import {
  type Extract,
  findKeptMemories,
  ingest,
  ingestSteps,
  type KeptMemories,
  timedMemories,
} from "../eval/locomo/ingesting.js";
import type { EvaluatedConversation } from "../eval/locomo/locomo-data.js";
import { type RecordedSearches, writeTraces } from "../eval/locomo/recorded-searches.js";
import { openEmbeddedMem0 } from "../memory/embedded-mem0.js";
import { withDeadline } from "../memory/memory-source.js";
import type { EvalLocomoOptions } from "./eval-options.js";
import { extractionModel, THRESHOLD } from "./eval-settings.js";
import type { Invocation } from "./invocation.js";
import { withProgress } from "./progress-bar.js";

const SEARCH_MS = 120_000;
const WRITE_MS = 600_000;

/** What an evaluation searches, and where it keeps what was found. */
export interface SearchedRun {
  readonly options: EvalLocomoOptions;
  readonly conversations: readonly EvaluatedConversation[];
  readonly searches: RecordedSearches;
  readonly call: Pick<Invocation, "env" | "stderr">;
}

/**
 * Adds to Mem0 the memories that are missing, makes the searches that are missing, and writes the traces. Resolves to each conversation's
 * memories as prompts give them, by its id; `onKept` gets them before the searches begin. Rejects with the signal's reason.
 */
export async function searchConversations(
  { options, conversations, searches, call }: SearchedRun,
  signal: AbortSignal,
  onKept: (kept: ReadonlyMap<string, KeptMemories>) => void,
): Promise<ReadonlyMap<string, KeptMemories>> {
  const { out, k: ks, ingest: how } = options;
  const kept = new Map<string, KeptMemories>();
  for (const { id } of conversations) {
    const known = findKeptMemories(out, id);
    if (known !== null) kept.set(id, known);
  }
  const model = extractionModel(options, call.env);
  const mem0 = openEmbeddedMem0({ dataDir: out, threshold: THRESHOLD, ...(model === null ? {} : { model }) });
  const source = withDeadline(mem0, { searchMs: SEARCH_MS, writeMs: WRITE_MS });
  const extract: Extract | null =
    model === null ? null : (scope, { messages }, aborted) => mem0.extract(scope, messages, aborted);
  try {
    const missing = conversations.filter(({ id }) => !kept.has(id));
    const steps = missing.reduce((sum, { conversation }) => sum + ingestSteps(conversation, how), 0);
    await withProgress(call.stderr, "loading memories", steps, async (step) => {
      for (const { id, conversation } of missing) {
        const given = { conversation, how, directory: out };
        kept.set(id, await ingest(source, scopeOf(id), given, extract, signal, step));
      }
    });
    onKept(kept);
    const unsearched = conversations.flatMap(({ id, asked }) =>
      asked.flatMap(({ at }) => ks.filter((k) => searches.find(id, at, k) === undefined)),
    ).length;
    await withProgress(call.stderr, "searching", unsearched, async (step) => {
      for (const conversation of conversations) {
        const given = { memories: kept.get(conversation.id) ?? [], ks };
        await searches.complete(source, scopeOf(conversation.id), conversation, given, signal, step);
      }
    });
  } finally {
    await source.close();
  }
  const given = options.times ? new Map([...kept].map(([id, memories]) => [id, timedMemories(memories)])) : kept;
  for (const conversation of conversations) {
    writeTraces(out, conversation, { memories: given.get(conversation.id) ?? [], searches, ks });
  }
  return given;
}

/** Each conversation's memories are a user's of its own. */
function scopeOf(conversation: string): Scope {
  return { tenant: "default", userId: conversation as UserId, agentId: null };
}
