import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Responses that wait behind another one on their connection, as they do for pipelined requests (RFC 9112 §9.3.2). When a connection
 * closes, Node tells the response whose turn it is, and no other: these would be waited for as long as the process lives.
 */
export class QueuedResponses {
  /** By connection; bounded by the requests in work. */
  readonly #queued = new WeakMap<Socket, Set<ServerResponse>>();

  /** To be called with every request, before anything is done for it. Ends its response with its connection. */
  watch({ socket }: IncomingMessage, outgoing: ServerResponse): void {
    if (outgoing.socket !== null) return;
    const queued = this.#queued.get(socket) ?? this.#watched(socket);
    queued.add(outgoing);
    outgoing.once("socket", () => queued.delete(outgoing));
  }

  #watched(socket: Socket): Set<ServerResponse> {
    const queued = new Set<ServerResponse>();
    this.#queued.set(socket, queued);
    socket.once("close", () => {
      for (const outgoing of queued) outgoing.destroy().emit("close");
    });
    return queued;
  }
}
