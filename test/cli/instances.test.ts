import { describe, expect, it } from "vitest";
import { newDatabase, testServer } from "../postgres/test-server.js";
import type { Ended } from "./launch.js";
import { processes } from "./memprefix-process.js";
import type { Listening } from "./own-directories.js";

const server = await testServer();

interface Message {
  readonly role: string;
  readonly content: string;
}

interface Composed {
  readonly messages: readonly Message[];
}

const TEA = { id: "m-tea", memory: "Ana likes green tea." };
const DOG = { id: "m-dog", memory: "Ana has a dog called Bo." };

describe.skipIf(server.url === null)("instances of the service on one PostgreSQL database", () => {
  const memprefix = processes();

  async function ask(
    instance: Listening<Ended, NodeJS.Signals>,
    path: string,
    body?: object,
    method = "POST",
  ): Promise<Response> {
    return fetch(`${instance.address}${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
  }

  async function compose(instance: Listening<Ended, NodeJS.Signals>, body: object): Promise<Composed> {
    const response = await ask(instance, "/compose", { user_id: "ana", ...body });
    expect(response.status).toBe(200);
    return (await response.json()) as Composed;
  }

  it("continue each other's conversations byte-exactly, and none sends what another forgot, nor after a kill", async () => {
    const environment = { MEMPREFIX_DATABASE_URL: await newDatabase(server.url ?? ""), MEMPREFIX_SOURCE: "none" };
    const [one, two] = await Promise.all([memprefix.serve(environment), memprefix.serve(environment)]);

    const first = {
      conversation_id: "c",
      request_id: "r1",
      messages: [{ role: "user", content: "Tea?" }],
      memories: [TEA, DOG],
    };
    const answered = await compose(one, first);
    expect(await compose(two, first)).toEqual(answered);

    const history = [...first.messages, { role: "assistant", content: "Green." }, { role: "user", content: "And Bo?" }];
    const second = await compose(two, { conversation_id: "c", request_id: "r2", messages: history, memories: [DOG] });
    expect(second.messages.slice(0, answered.messages.length)).toEqual(answered.messages);

    one.kill("SIGKILL");
    await one.ended;
    const three = await memprefix.serve(environment);
    expect(await compose(three, { ...first, messages: first.messages })).toEqual(answered);

    expect((await ask(two, "/users/ana/memories/m-tea", undefined, "DELETE")).status).toBeLessThan(300);
    const later = [...history, { role: "assistant", content: "Bo." }, { role: "user", content: "Tea again?" }];
    const third = await compose(three, {
      conversation_id: "c",
      request_id: "r3",
      messages: later,
      memories: [TEA, DOG],
    });
    expect(JSON.stringify(third)).not.toContain("green tea");
    const looked = await memprefix.run(["doctor"], { environment });
    // The conversation ended before its first turn, which was given the memory.
    expect(looked.stdout).toMatch(/^store +ok +1 requests of 1 users load$/m);
    expect(
      JSON.stringify(await compose(two, { messages: [{ role: "user", content: "?" }], memories: [TEA] })),
    ).not.toContain("green tea");
  });

  it("lose and double nothing of 32 clients who share users, every request of which is sent to both", async () => {
    const environment = { MEMPREFIX_DATABASE_URL: await newDatabase(server.url ?? ""), MEMPREFIX_SOURCE: "none" };
    const instances = await Promise.all([memprefix.serve(environment), memprefix.serve(environment)]);
    const turns = 5;
    const talk = async (client: number) => {
      const conversation = { user_id: `user-${client % 4}`, conversation_id: `c-${client}`, retention: "keep" };
      const messages: Message[] = [];
      let before: readonly Message[] = [];
      for (let turn = 0; turn < turns; turn++) {
        messages.push({ role: "user", content: `Question ${turn} of ${client}` });
        const memories = [turn, turn + client, 99].map((n) => ({ id: `m-${n}`, memory: `Fact ${n}.` }));
        const body = { ...conversation, request_id: `r-${client}-${turn}`, messages, memories };
        const [one, other] = (await Promise.all(instances.map((instance) => compose(instance, body)))) as [
          Composed,
          Composed,
        ];
        expect(other).toEqual(one);
        expect(one.messages.slice(0, before.length)).toEqual(before);
        const answer = { role: "assistant", content: `Answer ${turn}` };
        before = [...one.messages, answer];
        messages.push(answer);
      }
    };
    await Promise.all(Array.from({ length: 32 }, (_, client) => talk(client)));
    const looked = await memprefix.run(["doctor"], { environment });
    expect(looked.stdout).toMatch(/^store +ok +160 requests of 4 users load$/m);
  });

  it("share the dashboard's figures, and take a deleted user out of them everywhere", async () => {
    const environment = { MEMPREFIX_DATABASE_URL: await newDatabase(server.url ?? ""), MEMPREFIX_SOURCE: "none" };
    const [one, two] = await Promise.all([memprefix.serve(environment), memprefix.serve(environment)]);
    const said = [{ role: "user", content: "Tea?" }];
    await compose(one, { request_id: "r1", messages: said, memories: [TEA] });
    await compose(two, { request_id: "r2", user_id: "ben", messages: said, memories: [DOG] });
    const report = { user_id: "ana", request_id: "r1", cached_tokens: 0, ttft_ms: 40, model: "sonnet" };
    // Reported to the other instance, which waits for the prompt to be recorded.
    expect((await ask(two, "/feedback", report)).status).toBe(200);
    const view = async <T>(instance: Listening<Ended, NodeJS.Signals>, path: string) =>
      (await (await ask(instance, `/usage/${path}`, undefined, "GET")).json()) as T;
    type Rows = { requests: { user_id: string; model: string }[] };
    const seen = async (instance: Listening<Ended, NodeJS.Signals>) =>
      (await view<Rows>(instance, "requests")).requests;
    for (const instance of [one, two]) {
      await expect
        .poll(async () => (await seen(instance)).map(({ user_id, model }) => `${user_id} ${model}`).sort())
        .toEqual(["ana sonnet", "ben unknown"]);
      const { total } = await view<{ total: { prompts: number; reported_prompts: number } }>(instance, "summary");
      expect(total).toMatchObject({ prompts: 2, reported_prompts: 1 });
    }
    await compose(two, { request_id: "r3", messages: said, memories: [TEA] });
    expect((await ask(one, "/users/ana", undefined, "DELETE")).status).toBeLessThan(300);
    for (const instance of [two, one]) expect((await seen(instance)).map(({ user_id }) => user_id)).toEqual(["ben"]);
  });

  it("share their API keys, with the command that makes them", async () => {
    const environment = { MEMPREFIX_DATABASE_URL: await newDatabase(server.url ?? ""), MEMPREFIX_SOURCE: "none" };
    const [one, two] = await Promise.all([memprefix.serve(environment), memprefix.serve(environment)]);
    const { stdout } = await memprefix.run(["keys", "add"], { environment });
    for (const instance of [one, two]) {
      const asked = (headers: Record<string, string>) => fetch(`${instance.address}/users/ana/scopes`, { headers });
      expect((await asked({})).status).toBe(401);
      expect((await asked({ authorization: `Bearer ${stdout.trim()}` })).status).not.toBe(401);
    }
    expect((await memprefix.run(["keys", "list"], { environment })).stdout).toContain("valid");
  });

  it("say what they cannot do", async () => {
    const environment = { MEMPREFIX_DATABASE_URL: "postgres://ana:hunter2@127.0.0.1:1/none", MEMPREFIX_SOURCE: "none" };
    const unreachable = await memprefix.run(["serve"], { environment });
    expect(unreachable.stderr).toContain("cannot be reached");
    expect(unreachable.stderr).not.toContain("hunter2");
    const embedded = await memprefix.run(["serve"], { environment: { ...environment, MEMPREFIX_SOURCE: "embedded" } });
    expect(embedded.stderr).toContain("must be rest, hosted or none with MEMPREFIX_DATABASE_URL");
    const strange = await memprefix.run(["serve"], { environment: { MEMPREFIX_DATABASE_URL: "mysql://x/y" } });
    expect(strange.stderr).toContain("must be a postgres:// address");
    const looked = await memprefix.run(["doctor"], { environment });
    expect(looked.stdout).toMatch(/^store +broken .*cannot be reached/m);
    expect(looked.stdout).not.toContain("hunter2");
  });
});
