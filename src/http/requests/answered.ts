import type { Context, Next } from "hono";
import type { HttpEnvironment } from "./environment.js";

/**
 * Runs the next handler and calls `done` once: when the whole answer is sent, or the client disconnects. Where the app is not served by
 * Node: when the answer begins.
 */
export async function untilAnswered(c: Context<HttpEnvironment>, next: Next, done: () => void): Promise<void> {
  const outgoing = c.env?.outgoing;
  if (outgoing === undefined) {
    try {
      await next();
    } finally {
      done();
    }
    return;
  }
  if (outgoing.closed) done();
  else outgoing.once("close", done);
  await next();
}
