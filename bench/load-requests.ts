import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { seeded } from "./seeded.js";

export interface LoadShape {
  /** Composes of each user. */
  readonly each: number;
  readonly k: number;
  /** Users at a time. When one has asked everything, another comes. */
  readonly active: number;
}

/** Bodies of `POST /compose`, without end: each user asks a recorded conversation's questions; every other user in a conversation. */
export function* loadRequests(traces: readonly RecordedTrace[], shape: LoadShape): Generator<Buffer, never, undefined> {
  const random = seeded(7);
  const turns = new Map<number, number>();
  const active = Array.from({ length: shape.active }, (_, at) => at);
  let next = active.length;
  for (;;) {
    const at = Math.floor(random() * active.length);
    const user = active[at] ?? 0;
    const turn = turns.get(user) ?? 0;
    yield Buffer.from(bodyOf(traces, user, turn, shape.k));
    if (turn + 1 < shape.each) turns.set(user, turn + 1);
    else {
      turns.delete(user);
      active[at] = next++;
    }
  }
}

function bodyOf(traces: readonly RecordedTrace[], user: number, turn: number, k: number): string {
  const trace = traces[user % traces.length] as RecordedTrace;
  const first = Math.floor(user / traces.length);
  const questionAt = (n: number) =>
    trace.questions[(first + n) % trace.questions.length] as RecordedTrace["questions"][0];
  const isConversation = user % 2 === 1;
  const messages = [];
  for (let n = isConversation ? 0 : turn; n <= turn; n++) {
    const { question, answer } = questionAt(n);
    messages.push({ role: "user", content: question });
    if (n < turn) messages.push({ role: "assistant", content: String(answer ?? "I don't know.") });
  }
  return JSON.stringify({
    user_id: `user-${user}`,
    ...(isConversation ? { conversation_id: "one" } : {}),
    messages,
    memories: questionAt(turn)
      .retrieved.slice(0, k)
      .map((at) => ({ id: String(at), memory: trace.memories[at]?.memory })),
  });
}
