import { connect, type Socket } from "node:net";

/** What came of one request. */
export interface Served {
  readonly status: number;
  /** From the first byte sent to the last received, milliseconds. */
  readonly ms: number;
  readonly retryAfter: string | null;
  /** Received, the head included. */
  readonly bytes: number;
}

/** Node's own limit for connections that nothing comes on is 5 s. */
const STALE_MS = 2_000;

/**
 * A connection that is kept, with one request under way at a time. Reads no more of HTTP than the service writes (a length, no chunks),
 * so that the client leaves the machine to the service.
 */
export class LoadConnection {
  readonly #socket: Socket;
  readonly #head: string;
  #received: Buffer[] = [];
  #expected: { status: number; bytes: number; retryAfter: string | null } | null = null;
  #length = 0;
  #sent = performance.now();
  #done: ((served: Served) => void) | null = null;
  #fail: ((error: Error) => void) | null = null;

  constructor(port: number, path: string) {
    this.#socket = connect(port, "127.0.0.1").setNoDelay(true);
    this.#head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: `;
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#socket.on("error", (error) => this.#fail?.(error));
    this.#socket.on("close", () => this.#fail?.(new Error("the connection was closed")));
  }

  /** Whether it was not used for so long that the service may be closing it now. */
  get isStale(): boolean {
    return this.#socket.destroyed || performance.now() - this.#sent > STALE_MS;
  }

  send(body: Buffer): Promise<Served> {
    return new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#fail = reject;
      this.#sent = performance.now();
      this.#socket.cork();
      this.#socket.write(`${this.#head}${body.length}\r\n\r\n`, "latin1");
      this.#socket.write(body);
      this.#socket.uncork();
    });
  }

  close(): void {
    this.#fail = null;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#length += chunk.length;
    if (this.#expected === null) {
      const all = this.#received.length === 1 ? chunk : Buffer.concat(this.#received);
      const end = all.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = all.toString("latin1", 0, end);
      this.#expected = {
        status: Number(head.slice(9, 12)),
        bytes: end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0),
        retryAfter: /retry-after: ([^\r]+)/i.exec(head)?.[1] ?? null,
      };
    }
    if (this.#length < this.#expected.bytes) return;
    const { status, retryAfter } = this.#expected;
    const done = this.#done;
    const bytes = this.#length;
    this.#received = [];
    this.#length = 0;
    this.#expected = null;
    done?.({ status, ms: performance.now() - this.#sent, retryAfter, bytes });
  }
}
