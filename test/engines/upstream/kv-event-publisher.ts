import { connect, createServer, type Socket } from "node:net";
import { Packr } from "msgpackr";
import { Publisher, Router } from "zeromq";

const packr = new Packr({ useRecords: false, int64AsType: "bigint" });
const END = 0xffff_ffff_ffff_ffffn;

/** Where a port was let go of, the system may still have it for a moment. */
async function bind(socket: Publisher | Router, address: string): Promise<void> {
  for (let tries = 100; ; tries--) {
    try {
      return await socket.bind(address);
    } catch (error) {
      if (tries === 0 || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

/** Publishes as vLLM's ZmqEventPublisher does: topic, number, batch; and sends again what is asked for. */
export class EventPublisher {
  readonly #socket = new Publisher({ linger: 0 });
  readonly #router = new Router({ linger: 0 });
  readonly #sent: { readonly number: bigint; readonly payload: Buffer }[] = [];
  #next = 0n;
  #time = 1;
  endpoint = "";
  replay = "";
  /** Whether what it sends again comes to no end. */
  isEndless = false;

  /** @param port to listen on; 0: any */
  async listen(port = 0, replayPort = 0): Promise<this> {
    await bind(this.#socket, `tcp://127.0.0.1:${port || "*"}`);
    await bind(this.#router, `tcp://127.0.0.1:${replayPort || "*"}`);
    this.endpoint = this.#socket.lastEndpoint ?? "";
    this.replay = this.#router.lastEndpoint ?? "";
    void this.#answer();
    return this;
  }

  async #answer(): Promise<void> {
    for await (const [client, , from] of this.#router) {
      if (client === undefined || from === undefined) continue;
      for (const { number, payload } of this.#sent)
        if (number >= from.readBigUInt64BE()) await this.#router.send([client, "", numbered(number), payload]);
      while (this.isEndless) {
        await this.#router.send([client, "", numbered(0n), packr.pack([0, [], 0])]);
        await new Promise((done) => setTimeout(done, 5));
        if (this.#router.closed) return;
      }
      await this.#router.send([client, "", numbered(END), ""]);
    }
  }

  /** Publishes a batch; or only keeps it to be asked for, as if it had been lost on the way. */
  async publish(events: readonly unknown[], isLost = false): Promise<void> {
    const payload = packr.pack([this.#time++, events, 0]);
    this.#sent.push({ number: this.#next, payload });
    if (!isLost) await this.#socket.send(["kv", numbered(this.#next), payload]);
    this.#next++;
  }

  /** Publishes something else. */
  async publishBytes(payload: Uint8Array): Promise<void> {
    await this.#socket.send(["kv", numbered(this.#next), payload]);
  }

  /** Numbers begin again, as after a restart; nothing of before is sent again. */
  restart(): void {
    this.#sent.length = 0;
    this.#next = 0n;
  }

  /** What is sent again no more, as too much came since. */
  forget(count: number): void {
    this.#sent.splice(0, count);
  }

  close(): void {
    this.isEndless = false;
    this.#socket.close();
    this.#router.close();
  }
}

function numbered(number: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(number);
  return bytes;
}

/** Stands between a publisher and a follower. */
export interface FreezingProxy {
  readonly endpoint: string;
  /** How many connections it took. */
  readonly connections: number;
  /** Passes nothing on any more, and closes nothing. */
  freeze(): void;
  stop(): void;
}

export async function startFreezingProxy(endpoint: string): Promise<FreezingProxy> {
  const sockets: Socket[] = [];
  let connections = 0;
  let isFrozen = false;
  const server = createServer((follower) => {
    connections++;
    const publisher = connect(Number(endpoint.split(":").at(-1)), "127.0.0.1");
    for (const [from, to] of [
      [follower, publisher],
      [publisher, follower],
    ] as const) {
      sockets.push(from);
      from.on("error", () => {});
      from.on("data", (data) => {
        if (!isFrozen) to.write(data);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    endpoint: `tcp://127.0.0.1:${address.port}`,
    get connections() {
      return connections;
    },
    freeze() {
      isFrozen = true;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
