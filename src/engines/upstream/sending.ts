import type { ClientRequest } from "node:http";
import { TLSSocket } from "node:tls";

/** A call was not sent: its caller said that what it has to say is outdated. Of its body nothing left, or nothing of this attempt. */
export class OutdatedCallError extends Error {
  override readonly name = "OutdatedCallError";
  constructor() {
    super("the call was outdated before it was sent");
  }
}

/**
 * Sends a request's body. Where a connection has to be made first, which may take any time, `isCurrent` is asked behind that; a body that is
 * outdated is not sent, and the request fails with {@link OutdatedCallError}.
 */
export function sendBody(
  request: ClientRequest,
  body: string | Uint8Array | undefined,
  isCurrent: (() => Promise<boolean>) | undefined,
): void {
  if (isCurrent === undefined) {
    request.end(body);
    return;
  }
  request.once("socket", (socket) => {
    if (!socket.connecting) {
      request.end(body);
      return;
    }
    socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", () => {
      isCurrent().then(
        (isSent) => (isSent ? request.end(body) : request.destroy(new OutdatedCallError())),
        (error: unknown) => request.destroy(error instanceof Error ? error : new OutdatedCallError()),
      );
    });
  });
}
