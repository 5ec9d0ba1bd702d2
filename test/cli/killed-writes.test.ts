import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolders } from "../temporary-folders.js";
import { type Launched, launch, listening } from "./launch.js";

const EXCHANGES = 200;
const CONVERSATIONS = 20;
/** Where the service is killed: while exchanges come in, before Mem0 keeps an addition, before it answers, after it has answered. */
const STEPS = ["accepted", "received", "kept", "answered"] as const;
type Step = (typeof STEPS)[number];

interface Addition {
  readonly user_id: string;
  readonly messages: readonly { readonly content: string }[];
}

describe("memprefix serve, killed while 200 exchanges wait", () => {
  const newFolder = temporaryFolders();
  const added: Addition[] = [];
  let isDown = true;
  let onStep: (step: Step) => void = () => {};
  let mem0: Server;
  let service: Launched;
  let base = "";

  beforeAll(async () => {
    mem0 = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      if (isDown) return response.writeHead(503).end();
      onStep("received");
      // Killed by now, it is not told that it has to give up: Mem0 goes on.
      await setTimeout(20);
      added.push(JSON.parse(Buffer.concat(chunks).toString()) as Addition);
      onStep("kept");
      await setTimeout(5);
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ results: [] }));
      setImmediate(() => onStep("answered"));
      return response;
    });
    await new Promise<void>((listens) => mem0.listen(0, "127.0.0.1", listens));
  });
  afterAll(async () => {
    service.child.kill("SIGKILL");
    mem0.closeAllConnections();
    await new Promise((closed) => mem0.close(closed));
  });

  async function start(dataDir: string): Promise<void> {
    service = launch(["serve"], {
      PATH: process.env["PATH"] ?? "",
      MEMPREFIX_DATA_DIR: dataDir,
      MEMPREFIX_PORT: "0",
      MEMPREFIX_SOURCE: "rest",
      MEMPREFIX_MEM0_URL: `http://127.0.0.1:${(mem0.address() as AddressInfo).port}`,
      MEMPREFIX_LOG_LEVEL: "silent",
    });
    base = await listening(service);
  }

  it("gives Mem0 all of them, each conversation in order, and repeats only what was under way", async () => {
    const dataDir = newFolder();
    await start(dataDir);
    const restart = async () => {
      service.child.kill("SIGKILL");
      await service.ended;
      await start(dataDir);
    };
    /** Sent again where no answer came, as a client does. */
    const add = async (n: number): Promise<void> => {
      const c = n % CONVERSATIONS;
      const messages = [
        { role: "user", content: `${n}` },
        { role: "assistant", content: "Yes." },
      ];
      const body = JSON.stringify({ user_id: `u${c % 7}`, conversation_id: `c${c}`, messages });
      const init = { method: "POST", headers: { "content-type": "application/json" }, body };
      const answer = await fetch(`${base}/memories`, init).catch(() => null);
      if (answer === null) return add(n);
      expect(answer.status).toBe(202);
    };
    for (let n = 0; n < EXCHANGES; n++) {
      await add(n);
      if (n % 66 === 65) await restart();
    }
    isDown = false;
    let kills = 0;
    for (const step of STEPS.slice(1)) {
      for (const after of [1, 3]) {
        // The service has waited since its start, or is killed once more.
        const reached = new Promise<void>((reach) => {
          let seen = 0;
          onStep = (now) => {
            if (now !== step || ++seen !== after) return;
            onStep = () => {};
            service.child.kill("SIGKILL");
            reach();
          };
        });
        await restart();
        await reached;
        await service.ended;
        kills++;
        await start(dataDir);
      }
    }
    service.child.kill("SIGTERM");
    expect((await service.ended).code).toBe(0);
    await setTimeout(100);

    const questions = added.flatMap(({ messages }) =>
      messages.map(({ content }) => content).filter((one) => one !== "Yes."),
    );
    const first = [...new Set(questions)].map(Number);
    expect([...first].sort((a, b) => a - b)).toEqual(Array.from({ length: EXCHANGES }, (_, n) => n));
    for (let c = 0; c < CONVERSATIONS; c++) {
      const own = first.filter((n) => n % CONVERSATIONS === c);
      expect(own).toEqual([...own].sort((a, b) => a - b));
    }
    const batches = added.filter(({ messages }) => messages.length > 2).length;
    expect(batches).toBeGreaterThan(EXCHANGES / 8);
    // At most eight additions run at once, of two exchanges each.
    expect(questions.length - EXCHANGES).toBeLessThanOrEqual(2 * kills * 8 * 2);
  }, 240_000);
});
