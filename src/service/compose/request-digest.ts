import { type Digest, digestOf, messageDigest, type RetrievedMemory } from "../../core/index.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";

/**
 * The fields of a request's digest, in order. Stored digests are compared with it for as long as requests can be repeated, so the order
 * must not change. `null`: always serialised as null. Fields that select the engine or the form of the answer are left out: they may differ
 * in a repeated request. A new field that affects what is composed goes to the end, absent if null, as `memoryBudgetRatio` is.
 */
function askedFor(request: ComposeRequest): DigestedFields {
  return {
    userId: request.userId,
    agentId: request.agentId,
    conversationId: request.conversationId,
    requestId: null,
    query: request.query,
    // Their digests are made anyway: of a long history the texts take longer than all else here.
    messages: request.messages.map(messageDigest),
    memories: hasPlainMemories(request) ? request.memories.length : request.memories,
    topK: request.topK ?? DEFAULT_TOP_K,
    memoryBudgetTokens: request.memoryBudgetTokens,
    memoryBudgetRatio: request.memoryBudgetRatio ?? undefined,
    policy: request.policy,
    retention: request.retention,
    annotations: annotationsAskedFor(request.annotations),
    prompt: null,
    history: request.history === "exact" ? undefined : (request.history ?? undefined),
    blockTemplate: request.blockTemplate ?? undefined,
    timeZone: request.timeZone ?? undefined,
    dedupe: request.dedupe ?? undefined,
  };
}

/**
 * Whether of a request's memories the ids and texts count alone: other fields do only where the request says that its blocks give them, as
 * earlier versions read none.
 */
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

/** In the form of earlier versions, which had two annotations of ten labels by default. */
function annotationsAskedFor(asked: ComposeRequest["annotations"]) {
  const { order, location, topN, wording } = asked;
  return { order, location: location || order, topN: topN === "auto" ? 10 : topN, wording };
}

/** Every field of a request is in one of these two types: a new field does not compile until it is assigned. */
type DigestedFields = Readonly<Record<Exclude<keyof ComposeRequest, NotAskedFor>, unknown>>;
type NotAskedFor =
  | "engine"
  | "given"
  | "moved"
  | "marksElsewhere"
  | "toolMemories"
  | "maxPromptTokens"
  | "acceptedTokens"
  | "destination"
  | "workers"
  | "worker"
  | "scheduleMs"
  | "historyRatio";

/** Digest of what a request asks for, to detect a reused request id. */
export function requestDigest(request: ComposeRequest): Digest {
  const asked = JSON.stringify(askedFor(request));
  return digestOf(hasPlainMemories(request) ? `${asked}\n${plainMemories(request.memories)}` : asked);
}

/** Whether a stored digest is the request's, in the form of any version. */
export function isDigestOf(request: ComposeRequest, stored: Digest): boolean {
  return (
    stored === requestDigest(request) || earlierForms(request).some((form) => stored === digestOf(JSON.stringify(form)))
  );
}

/**
 * The forms of earlier versions: with the memories themselves, with the messages themselves, of annotations without a ranking, and before
 * there was a retention and a choice of policy.
 */
function earlierForms(request: ComposeRequest): object[] {
  const withMemories = hasPlainMemories(request)
    ? { ...askedFor(request), memories: request.memories.map(({ id, text }) => ({ id, text })) }
    : askedFor(request);
  return [withMemories, ...formsWithMessages(request, { ...withMemories, messages: request.messages })];
}

function formsWithMessages(request: ComposeRequest, asked: DigestedFields): object[] {
  const { annotations } = request;
  const withReferences = { ...asked, annotations: { ...annotationsAskedFor(annotations), location: true } };
  const forms = annotations.order ? [asked] : [asked, withReferences];
  if (request.retention !== null) return forms;
  const beforeRetention = { ...asked, retention: undefined };
  const beforePolicies = { ...beforeRetention, policy: "prefix-exact" };
  return request.policy === null ? [...forms, beforeRetention, beforePolicies] : [...forms, beforeRetention];
}
