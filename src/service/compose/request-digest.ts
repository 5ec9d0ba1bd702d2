import { type Digest, digestOf, messageDigest, type RetrievedMemory } from "../../core/index.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";

/**
 * The fields of a request's digest, in order. Stored digests are compared with it for as long as requests can be repeated, so the order
 * must not change. Fields that select the engine or the form of the answer are left out: they may differ in a repeated request. A new field
 * that affects what is composed goes to the end, absent if null, as `memoryBudgetRatio` is.
 */
function askedFor(request: ComposeRequest): DigestedFields {
  return {
    userId: request.userId,
    agentId: request.agentId,
    conversationId: request.conversationId,
    query: request.query,
    // Their digests are made anyway: of a long history the texts take longer than all else here.
    messages: request.messages.map(messageDigest),
    memories: hasPlainMemories(request) ? request.memories.length : request.memories,
    topK: request.topK ?? DEFAULT_TOP_K,
    memoryBudgetTokens: request.memoryBudgetTokens,
    memoryBudgetRatio: request.memoryBudgetRatio ?? undefined,
    policy: request.policy,
    retention: request.retention,
    annotations: request.annotations,
    history: request.history === "exact" ? undefined : (request.history ?? undefined),
    blockTemplate: request.blockTemplate ?? undefined,
    timeZone: request.timeZone ?? undefined,
    dedupe: request.dedupe ?? undefined,
    among: request.among,
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

/** Every field of a request is in one of these two types: a new field does not compile until it is assigned. */
type DigestedFields = Readonly<Record<Exclude<keyof ComposeRequest, NotAskedFor>, unknown>>;
type NotAskedFor =
  | "requestId"
  | "prompt"
  | "engine"
  | "given"
  | "moved"
  | "unusable"
  | "marksElsewhere"
  | "sentNow"
  | "dryRun"
  | "recordUsage"
  | "toolMemories"
  | "maxPromptTokens"
  | "acceptedTokens"
  | "destination"
  | "workers"
  | "worker"
  | "historyRatio";

/** Digest of what a request asks for, to detect a reused request id. */
export function requestDigest(request: ComposeRequest): Digest {
  const asked = JSON.stringify(askedFor(request));
  return digestOf(hasPlainMemories(request) ? `${asked}\n${plainMemories(request.memories)}` : asked);
}
