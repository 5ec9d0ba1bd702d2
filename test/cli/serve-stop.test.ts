import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { restMem0Server } from "../memory/rest-mem0-server.js";
import { commands, type Ended } from "./memprefix-command.js";
import type { Listening } from "./own-directories.js";

const chat = { stream: true, user: "ada", messages: [{ role: "user", content: "Tea?" }] };

/** A connection that is kept, and what came over it so far. */
class KeptConnection {
  text = "";
  readonly closed: Promise<unknown>;

  private constructor(private readonly socket: Socket) {
    socket.setEncoding("utf8").on("data", (more: string) => {
      this.text += more;
    });
    socket.on("error", () => {});
    this.closed = once(socket, "close");
  }

  static async to({ address }: Listening<Ended>): Promise<KeptConnection> {
    const socket = connect(Number(new URL(address).port), "127.0.0.1");
    await once(socket, "connect");
    return new KeptConnection(socket);
  }

  /** Sends a GET's head, less its last line where `isWhole` is false. */
  get(path: string, isWhole = true): void {
    this.socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n${isWhole ? "\r\n" : ""}`);
  }

  finishHead(): void {
    this.socket.write("\r\n");
  }
}

describe("memprefix serve, told to stop while an answer streams", () => {
  const memprefix = commands();
  const engine = openAiEngine();

  /** A service with a chat whose first event is with the client, and the engine's end of it. */
  async function streaming() {
    let engines: ServerResponse | undefined;
    engine.behave((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"choices":[{"index":0,"delta":{"content":"first"}}]}\n\n');
      engines = response;
    });
    const service = await memprefix.serve({ MEMPREFIX_UPSTREAM_URL: engine.url });
    const answer = await fetch(`${service.address}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify(chat),
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toContain("first");
    return { service, reader, engines: engines as ServerResponse };
  }

  async function rest(reader: ReadableStreamDefaultReader<string>): Promise<string> {
    let text = "";
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    return text;
  }

  it("lets it go on to its end, and tells everybody else to leave", async () => {
    const { service, reader, engines } = await streaming();
    // A request whose head is not whole keeps its connection, so that it can be asked on it while the service stops.
    const kept = await KeptConnection.to(service);
    kept.get("/users/ada/export", false);
    service.kill("SIGTERM");
    await expect.poll(() => service.stderr).toContain('"stopping"');
    const health = await fetch(`${service.address}/healthz`);
    expect(health.status).toBe(503);
    expect(health.headers.get("connection")).toBe("close");
    expect(await health.json()).toMatchObject({ status: "stopping" });
    expect((await fetch(`${service.address}/livez`)).status).toBe(200);
    const refused = await fetch(`${service.address}/users/ada/export`);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({ status: 503, detail: "the service is stopping" });
    kept.finishHead();
    await kept.closed;
    expect(kept.text).toMatch(/^HTTP\/1\.1 503 /);
    expect(kept.text).toMatch(/\r\nconnection: close\r\n/i);
    engines.write('data: {"choices":[{"index":0,"delta":{"content":"second"}}]}\n\n');
    engines.end("data: [DONE]\n\n");
    expect(await rest(reader)).toMatch(/second[\s\S]*\[DONE\]/);
    expect(await service.ended).toMatchObject({ code: 0 });
    await expect(fetch(`${service.address}/healthz`)).rejects.toThrow();
  });

  it("cuts it off at the deadline, ends with 0 and keeps what was composed", async () => {
    const { service, reader } = await streaming();
    service.kill("SIGTERM");
    await rest(reader).catch(() => "cut off");
    expect(await service.ended).toMatchObject({ code: 0 });
    const again = await memprefix.serve();
    const exported = await (await fetch(`${again.address}/users/ada/export`)).json();
    expect(exported).toMatchObject({ scopes: [{ tables: { requests: [{}] } }] });
  });
});

describe("memprefix serve, told to stop with connections that are kept", () => {
  const memprefix = commands();
  const mem0 = restMem0Server();
  /** A service with a request whose search takes so long. */
  const searching = async (delayMs: number) => {
    mem0.delayMs = delayMs;
    mem0.memories.set("m-1", { id: "m-1", memory: "Ada drinks tea", user_id: "ada" });
    const environment = {
      MEMPREFIX_SOURCE: "rest",
      MEMPREFIX_MEM0_URL: mem0.url,
      MEMPREFIX_SEARCH_TIMEOUT_MS: "50000",
    };
    const service = await memprefix.serve(environment);
    const body = JSON.stringify({ user_id: "ada", query: "Tea?" });
    const headers = { "content-type": "application/json" };
    const request = fetch(`${service.address}/compose`, { method: "POST", headers, body });
    await expect.poll(() => mem0.requests.length).toBe(1);
    return { service, request };
  };

  it.each(["SIGTERM", "SIGINT"] as const)(
    "closes those that ask nothing, while others are still answered: %s",
    async (signal) => {
      const { service, request } = await searching(700);
      const idle = await KeptConnection.to(service);
      idle.get("/healthz");
      await expect.poll(() => idle.text).toContain('"ok"');
      service.kill(signal);
      await idle.closed;
      const answer = await request;
      expect(answer.status).toBe(200);
      expect(answer.headers.get("connection")).toBe("close");
      expect(await answer.text()).toContain("Ada drinks tea");
      expect(await service.ended).toMatchObject({ code: 0 });
    },
  );
});
