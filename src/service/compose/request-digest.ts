import { type Digest, digestOf } from "../../core/index.js";
import type { ComposeRequest } from "./compose-request.js";

/** What a request asks for, to notice an id that is used for another one. In which form it is answered is no part of that. */
export function requestDigest(request: ComposeRequest): Digest {
  return digestOf(JSON.stringify(askedFor(request)));
}

/** Whether a stored digest is a request's, by whichever version it was stored. */
export function isDigestOf(request: ComposeRequest, stored: Digest): boolean {
  return (
    stored === requestDigest(request) || earlierForms(request).some((form) => stored === digestOf(JSON.stringify(form)))
  );
}

function askedFor(request: ComposeRequest) {
  return {
    ...request,
    // As before there was one, where there is none.
    memoryBudgetRatio: request.memoryBudgetRatio ?? undefined,
    requestId: null,
    prompt: null,
    engine: undefined,
    marksElsewhere: undefined,
    toolMemories: undefined,
    maxPromptTokens: undefined,
  };
}

/** What today's fields were before there was a choice. */
function earlierForms(request: ComposeRequest): object[] {
  if (request.retention !== null) return [];
  const beforeRetention = { ...askedFor(request), retention: undefined };
  const beforePolicies = { ...beforeRetention, policy: "prefix-exact" };
  return request.policy === null ? [beforeRetention, beforePolicies] : [beforeRetention];
}
