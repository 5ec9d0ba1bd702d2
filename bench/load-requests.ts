import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { seeded } from "./seeded.js";

/** How the load is made up. */
export interface LoadShape {
  /** Composes of each user. */
  readonly each: number;
  readonly k: number;
  /** Users who are at it at any time; when one is through, another comes. */
  readonly active: number;
  /** Of so many equal parts of all users, the `part`-th from 0. */
  readonly parts: number;
  readonly part: number;
}

/**
 * The bodies of `POST /compose`, one by one and without end: each user asks a recorded conversation's questions; every other user in a
 * conversation.
 */
export function* loadRequests(traces: readonly RecordedTrace[], shape: LoadShape): Generator<Buffer, never, undefined> {
  const { part, parts } = shape;
  // By sixes, so that each part has of every conversation, and of both kinds of users.
  const { length } = traces;
  const userAt = (at: number) => (Math.floor(at / length) * parts + part) * length + (at % length);
  const random = seeded(7 + part);
  const asked = new Map<number, number>();
  const active = Array.from({ length: Math.ceil(shape.active / parts) }, (_, at) => at);
  let next = active.length;
  for (;;) {
    const at = Math.floor(random() * active.length);
    const user = active[at] ?? 0;
    const turn = asked.get(user) ?? 0;
    yield Buffer.from(bodyOf(traces, userAt(user), turn, shape.k));
    if (turn + 1 < shape.each) asked.set(user, turn + 1);
    else {
      asked.delete(user);
      active[at] = next++;
    }
  }
}

/** The body of a user's compose, the `turn`-th from 0. */
export function bodyOf(traces: readonly RecordedTrace[], user: number, turn: number, k: number): string {
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
