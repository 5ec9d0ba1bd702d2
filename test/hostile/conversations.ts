import type { ServedApp } from "../http/server/served-app.js";
import type { RestMem0Server, ServedMemory } from "../memory/rest-mem0-server.js";

/** A conversation of user "ada" in which each answer repeats its question: gives the prompt, as JSON, and its last message. */
export function conversationOf(app: Pick<ServedApp, "compose">, id: string) {
  const said: object[] = [];
  return async (content: string, more: object = {}) => {
    said.push({ role: "user", content });
    const answer = await app.compose({ user_id: "ada", conversation_id: id, messages: [...said], ...more });
    said.push({ role: "assistant", content: `To ${content}` });
    return { answer, all: JSON.stringify(answer.messages), last: JSON.stringify(answer.messages.at(-1)) };
  };
}

/** Has Mem0 keep these memories alone. */
export function serve(mem0: RestMem0Server, ...memories: readonly ServedMemory[]): void {
  mem0.memories.clear();
  for (const memory of memories) mem0.memories.set(memory.id, memory);
}
