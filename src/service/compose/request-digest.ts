import { type Digest, digestOf, messageDigest, type RetrievedMemory } from "../../core/index.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";

/**
 * The fields of a request's digest, in order. Stored digests are compared with it for as long as requests can be repeated, so the order
 * must not change. Fields that select the engine or the form of the answer are left out: they may differ in a repeated request. Any other
 * field is digested where it is given, after those that are always there.
 */
function askedFor(request: ComposeRequest): Readonly<Record<string, unknown>> {
  const { requestId, prompt, engine, given, moved, unusable, marksElsewhere, sentNow, dryRun, recordUsage, ...asked } =
    request;
  const { toolMemories, maxPromptTokens, acceptedTokens, destination, workers, worker, historyRatio, ...digested } =
    asked;
  const { userId, agentId, conversationId, query, messages, memories, topK, memoryBudgetTokens, ...others } = digested;
  const {
    memoryBudgetRatio,
    policy,
    retention,
    annotations,
    history,
    blockTemplate,
    timeZone,
    dedupe,
    among,
    ...more
  } = others;
  return {
    userId,
    agentId,
    conversationId,
    query,
    // Their digests are made anyway: of a long history the texts take longer than all else here.
    messages: messages.map(messageDigest),
    memories: hasPlainMemories(request) ? request.memories.length : memories,
    topK: topK ?? DEFAULT_TOP_K,
    memoryBudgetTokens,
    memoryBudgetRatio: memoryBudgetRatio ?? undefined,
    policy,
    retention,
    annotations,
    history: history === "exact" ? undefined : (history ?? undefined),
    blockTemplate: blockTemplate ?? undefined,
    timeZone: timeZone ?? undefined,
    dedupe: dedupe ?? undefined,
    among,
    ...Object.fromEntries(
      Object.entries(more)
        .filter(([, value]) => value !== null)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
  };
}

/** Whether of a request's memories the ids and texts count alone: other fields do only where the request says that its blocks give them. */
function hasPlainMemories(
  request: ComposeRequest,
): request is ComposeRequest & { memories: readonly RetrievedMemory[] } {
  return request.memories !== null && (request.blockTemplate ?? null) === null;
}

/** Ids and texts, each with its length: the same for no other memories. JSON would look at each of their characters for what it escapes. */
function plainMemories(memories: readonly RetrievedMemory[]): string {
  let plain = "";
  for (const { id, text } of memories) plain += `${id.length}:${id}${text.length}:${text}`;
  return plain;
}

/** Digest of what a request asks for, to detect a reused request id. */
export function requestDigest(request: ComposeRequest): Digest {
  const asked = JSON.stringify(askedFor(request));
  return digestOf(hasPlainMemories(request) ? `${asked}\n${plainMemories(request.memories)}` : asked);
}
