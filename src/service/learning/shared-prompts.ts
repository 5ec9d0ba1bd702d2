import { type ConversationId, digestOf, type RequestId, type Scope } from "../../core/index.js";

/*
 * Names of prompts in a cache that all users share. They name nobody: what a deleted user sent stays in the sums.
 */

/** Whose prompts continue each other: a conversation, or a user's single prompts. */
export function streamOf({ tenant, userId, agentId }: Scope, conversation: ConversationId | null): string {
  return digestOf(JSON.stringify([tenant, userId, agentId, "conversation", conversation]));
}

/** One prompt. */
export function sentAs({ tenant, userId, agentId }: Scope, request: RequestId): string {
  return digestOf(JSON.stringify([tenant, userId, agentId, "request", request]));
}
