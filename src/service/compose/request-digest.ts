import { type Digest, digestOf } from "../../core/index.js";
import type { ComposeRequest } from "./compose-request.js";

/**
 * The fields that a request's digest is made of, in its order: stored digests are compared with it for as long as requests may be
 * repeated. `null`: always written as null. A field that says where a prompt goes, or how its answer is written, is in none: it may differ
 * in a request that is repeated. A new field that changes what is composed goes to the end, absent where it is null, as
 * `memoryBudgetRatio` is.
 */
function askedFor(request: ComposeRequest): DigestedFields {
  return {
    userId: request.userId,
    agentId: request.agentId,
    conversationId: request.conversationId,
    requestId: null,
    query: request.query,
    messages: request.messages,
    memories: request.memories,
    topK: request.topK,
    memoryBudgetTokens: request.memoryBudgetTokens,
    memoryBudgetRatio: request.memoryBudgetRatio ?? undefined,
    policy: request.policy,
    retention: request.retention,
    annotations: request.annotations,
    prompt: null,
    history: request.history === "exact" ? undefined : (request.history ?? undefined),
  };
}

/** Every field of a request is named here or there: with a new one this does not compile until it is decided which. */
type DigestedFields = Readonly<Record<Exclude<keyof ComposeRequest, NotAskedFor>, unknown>>;
type NotAskedFor = "engine" | "marksElsewhere" | "toolMemories" | "maxPromptTokens" | "acceptedTokens" | "historyRatio";

/** Digest of what a request asks for, to notice an id that is used for another one. */
export function requestDigest(request: ComposeRequest): Digest {
  return digestOf(JSON.stringify(askedFor(request)));
}

/** Whether a stored digest is a request's, by whichever version it was stored. */
export function isDigestOf(request: ComposeRequest, stored: Digest): boolean {
  return (
    stored === requestDigest(request) || earlierForms(request).some((form) => stored === digestOf(JSON.stringify(form)))
  );
}

/** What today's fields were before there was a choice. */
function earlierForms(request: ComposeRequest): object[] {
  if (request.retention !== null) return [];
  const beforeRetention = { ...askedFor(request), retention: undefined };
  const beforePolicies = { ...beforeRetention, policy: "prefix-exact" };
  return request.policy === null ? [beforeRetention, beforePolicies] : [beforeRetention];
}
