import { type IncomingMessage, ServerResponse } from "node:http";

/**
 * A response whose head leaves together with what of its body is at hand by then, in one write instead of two: a stream's first token
 * is there when its head is. A head whose body is slow to come leaves as soon as the event loop turns.
 */
export class JoinedHead<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override flushHeaders(): void {
    this.cork();
    setImmediate(() => this.uncork());
    super.flushHeaders();
  }
}
