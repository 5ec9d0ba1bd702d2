import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Admission } from "../../../src/http/server/node-server.js";

/** Milliseconds that each request takes, by a clock that only serving moves. */
const EACH = 10;
const MAX_LAG = 100;
/** A standing queue may be twice as old before the first is turned away. */
const BURST = 2 * MAX_LAG;

interface Served {
  readonly order: string[];
  readonly refused: string[];
  readonly waited: number[];
  readonly admission: Admission;
  readonly port: number;
  /** Accepted so far. */
  readonly connections: () => number;
}

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serving(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  maxWaiting = 1_000,
): Promise<Served> {
  let now = 0;
  let connections = 0;
  const order: string[] = [];
  const refused: string[] = [];
  const waited: number[] = [];
  const admission = new Admission({
    maxLagMs: MAX_LAG,
    maxWaiting,
    clock: () => now,
    onRejected: ({ reason, method, ms }) => refused.push(`${method} ${reason} ${ms}`),
    onWaited: (ms) => waited.push(ms),
  });
  const listener = admission.before((request, response) => {
    order.push(request.url ?? "");
    now += EACH;
    answer(request, response);
  });
  const server = createServer(listener).on("connection", () => {
    connections++;
    admission.connected();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => server.close().closeAllConnections());
  return {
    order,
    refused,
    waited,
    admission,
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
  };
}

const ok = (_request: IncomingMessage, response: ServerResponse) => {
  response.end("served");
};

/** Requests that come in one go, on one connection; their answers in order. */
async function inOneGo({ port }: Served, paths: readonly string[]): Promise<string[]> {
  const socket = connect(port, "127.0.0.1");
  closing.push(() => socket.destroy());
  socket.write(paths.map((path) => `POST ${path} HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n`).join(""));
  let text = "";
  for (;;) {
    text += String((await once(socket, "data"))[0]);
    const answers = text.split(/(?=HTTP\/1\.1 \d)/);
    if (answers.length === paths.length && /\r\n\r\n.+$/s.test(answers.at(-1) ?? "")) return answers;
  }
}

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `/${n}`);
const statusOf = (answer: string) => answer.slice(9, 12);

describe("requests that come together", () => {
  it("are let in in the order in which they came; a burst is served to its end", async () => {
    const served = await serving(ok);
    const paths = numbered(BURST / EACH);
    expect((await inOneGo(served, paths)).map(statusOf)).toEqual(paths.map(() => "200"));
    expect(served.order).toEqual(paths);
    expect(served.refused).toEqual([]);
    expect(Math.max(...served.waited)).toBeGreaterThan(MAX_LAG);
  });

  it("and are more than can be served are turned away once they waited too long, with nothing done for them", async () => {
    const served = await serving(ok);
    const paths = numbered(3 * (BURST / EACH));
    const answers = await inOneGo(served, paths);
    const statuses = answers.map(statusOf);
    const away = statuses.indexOf("503");
    expect(away).toBeGreaterThanOrEqual(BURST / EACH);
    expect(statuses).toEqual(paths.map((_, n) => (n < away ? "200" : "503")));
    expect(served.order).toEqual(paths.slice(0, away));
    expect(served.refused.map((line) => line.replace(/ \d+$/, ""))).toEqual(statuses.slice(away).map(() => "POST lag"));
    expect(answers[away]).toMatch(/\r\nretry-after: 1\r\n/i);
    expect(answers[away]).toContain("MEMPREFIX_MAX_LAG_MS");
    expect(answers[away]).toMatch(/\r\nx-content-type-options: nosniff\r\n/i);
    expect(served.admission.waiting).toBe(0);
    expect((await inOneGo(served, ["/later"])).map(statusOf)).toEqual(["200"]);
  });

  it("wait in a number that is bounded", async () => {
    const served = await serving(ok, 5);
    const statuses = (await inOneGo(served, numbered(20))).map(statusOf);
    // What one turn has time for, and those that may wait.
    expect(statuses.filter((status) => status === "200")).toHaveLength(3 + 5);
    expect(new Set(served.refused)).toEqual(new Set(["POST pending 0"]));
  });

  it("ask how the service is, and need not wait; chats are let in, and marked", async () => {
    const shed: boolean[] = [];
    const served: Served = await serving((request, response) => {
      if (request.url === "/v1/chat/completions") shed.push(served.admission.isShed(request));
      response.end("served");
    });
    const paths = [...numbered(2 * (BURST / EACH)), "/healthz", "/v1/chat/completions"];
    const answers = await inOneGo(served, paths);
    expect(answers.slice(-2).map(statusOf)).toEqual(["200", "200"]);
    expect(served.order.indexOf("/healthz")).toBeLessThan(10);
    expect(shed).toEqual([true]);
    await inOneGo(served, ["/v1/chat/completions"]);
    expect(shed).toEqual([true, false]);
  });

  it("and whose client went away meanwhile are not let in", async () => {
    const clients: Socket[] = [];
    const served = await serving((_request, response) => {
      for (const client of clients) client.destroy();
      setTimeout(() => response.end("served"), 20);
    });
    const gone = connect(served.port, "127.0.0.1");
    clients.push(gone);
    await once(gone, "connect");
    gone.write(
      numbered(30)
        .map((path) => `POST /gone${path} HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n`)
        .join(""),
    );
    await once(gone, "close");
    await expect.poll(() => served.admission.waiting).toBe(0);
    expect(served.order.length).toBeLessThan(15);
  });
});

describe.each([
  "/users/ana/v1/chat/completions",
  "/users/ana/agents/cook/conversations/trip/v1/responses?stream=1",
  "/plain/v1//messages",
])("a chat below a base URL: %s", (chat) => {
  it("is let in, and marked", async () => {
    const served: Served = await serving((request, response) => response.end(String(served.admission.isShed(request))));
    const paths = [...numbered(2 * (BURST / EACH)), "/users/ana", chat];
    const answers = await inOneGo(served, paths);
    expect(answers.slice(-2).map(statusOf)).toEqual(["503", "200"]);
    expect(answers.at(-1)).toMatch(/true\r\n|true$/);
  });
});

describe("new connections", () => {
  it("are accepted while requests wait, though Node accepts one in a turn of its loop", async () => {
    const served = await serving(ok);
    const answers = inOneGo(served, numbered(BURST / EACH));
    const sockets = Array.from({ length: 60 }, () => connect(served.port, "127.0.0.1"));
    closing.push(() => {
      for (const socket of sockets) socket.destroy();
    });
    await answers;
    // Some seven turns.
    expect(served.connections()).toBeGreaterThan(50);
  });
});
