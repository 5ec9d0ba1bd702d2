/** Every field of `POST /compose` that may be absent, and that counts as absent when it is null; `query` is needed beside these. */
export const ABSENT_AS_NULL = {
  agent_id: null,
  conversation_id: null,
  request_id: null,
  messages: null,
  memories: null,
  system: null,
  top_k: null,
  memory_budget_tokens: null,
  memory_budget_ratio: null,
  policy: null,
  retention: null,
  annotations: null,
  engine: null,
} as const;
