import { type IncomingMessage, ServerResponse } from "node:http";

/**
 * A response whose head leaves together with what of its body is at hand by then, in one write instead of two: a stream's first token
 * is there when its head is. A head whose body is slow to come leaves when nothing more can be done at once.
 */
export class JoinedHead<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override flushHeaders(): void {
    this.cork();
    // Behind all that is promised already, and before anything else that the event loop has.
    queueMicrotask(() => process.nextTick(() => this.uncork()));
    super.flushHeaders();
  }
}
