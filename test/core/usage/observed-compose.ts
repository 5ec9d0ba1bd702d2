import type { RequestId, UserId } from "../../../src/core/index.js";
import type { ObservedCompose } from "../../../src/service/base/memprefix-observer.js";

/** A single prompt of 2,000 tokens, as a service tells of it. */
export function observedCompose(request: string, at: number, user = "ana", tenant = "default"): ObservedCompose {
  return {
    scope: { tenant, userId: user as UserId, agentId: null },
    requestId: request as RequestId,
    conversationId: null,
    at,
    engine: "openai",
    model: null,
    plan: {
      layout: "single",
      policy: "prefix-exact",
      retention: "keep",
      freshStart: false,
      expectedCachedTokens: 0,
      uncachedTokens: 2_000,
      totalTokens: 2_000,
      miss: null,
      searchPath: [],
      orderChanged: false,
      stableMessages: 0,
    },
    besideTokens: 0,
    warnings: [],
    carriedTokens: 0,
    byHand: { inMessage: 2_400, inSystem: 2_500 },
  };
}
