import type { Context, Next } from "hono";
import type { HttpEnvironment } from "./environment.js";

/**
 * Goes on with a request, and calls back once: when its answer has gone out to the end, or its client has gone away. Where the app is not
 * served by Node, when the answer begins.
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
