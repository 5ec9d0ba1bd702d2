import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import { OpenApiDocument } from "../contracts/openapi-document.js";
import { callerOf, sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";

/** Asks for another protocol, which `fetch` does not let. */
async function upgraded(base: string, method: string, path: string, upgrade: string): Promise<IncomingMessage> {
  const headers = { connection: "Upgrade", upgrade, "sec-websocket-version": "13", "sec-websocket-key": "eA==" };
  const sent = request(base + path, { method, headers }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return answer;
}

const TOKEN = "told-to-mem0-alone";
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

describe("a method that a path does not take", () => {
  const app = servedApp({ environment: { MEMPREFIX_WEBHOOK_TOKEN: TOKEN } });
  const bearer = { authorization: `Bearer ${TOKEN}` };

  it("is 405 with what every documented path takes", async () => {
    const taken = new Map<string, string[]>([["/openapi.json", ["GET"]]]);
    for (const operation of (await OpenApiDocument.of(app)).operations) {
      const [method = "", path = ""] = operation.split(" ");
      taken.set(path, [...(taken.get(path) ?? []), method]);
    }
    for (const [path, methods] of taken)
      for (const method of METHODS.filter((name) => !methods.includes(name))) {
        const answer = await sendWith(app, bearer, method, path.replace(/\{\w+\}/g, "x"));
        expect([method, path, answer.status]).toEqual([method, path, 405]);
        const allowed = methods.flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name]));
        expect(answer.headers.get("allow")?.split(", ").sort()).toEqual(allowed.sort());
      }
    expect(app.faults).toEqual([]);
  });

  it("has no body where the head alone is asked for", async () => {
    const answer = await sendWith(app, {}, "HEAD", "/compose");
    expect([answer.status, answer.headers.get("allow"), answer.text]).toEqual([405, "POST", ""]);
    expect((await sendWith(app, {}, "HEAD", "/healthz")).status).toBe(200);
  });

  it("is told in OpenAI's form below /v1", async () => {
    const answer = await sendWith(app, {}, "GET", "/v1/chat/completions");
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
    expect(answer.headers.get("x-memprefix-error-origin")).toBe("memprefix");
    const { error } = openAiProblemSchema.parse(JSON.parse(answer.text));
    expect(error).toMatchObject({ message: "/v1/chat/completions takes POST, not GET", type: "invalid_request_error" });
  });

  it("is 426 on any path of /v1 for a WebSocket, whose client goes on over HTTP at once", async () => {
    for (const path of ["responses", "realtime?model=m", "chat/completions", "messages", "nope"])
      for (const [method, base] of [
        ["GET", "/v1"],
        ["POST", "/v1"],
        ["GET", "/users/ada/v1"],
      ] as const) {
        const answer = await upgraded(app.base, method, `${base}/${path}`, "websocket");
        expect([path, answer.statusCode, answer.headers.connection]).toEqual([path, 426, "close"]);
        const { error } = JSON.parse(await text(answer)) as { error: { message: string } };
        expect(error.message).toContain("only HTTP is served here");
      }
    expect((await upgraded(app.base, "GET", "/v1/responses", "h2c, WebSocket")).statusCode).toBe(426);
    // A client that merely offers another version of HTTP is answered.
    expect((await upgraded(app.base, "GET", "/v1/responses", "h2c")).statusCode).toBe(405);
    expect((await upgraded(app.base, "GET", "/livez", "websocket")).statusCode).toBe(200);
    expect(app.faults).toEqual([]);
  });

  it("is told to nobody who may not come in", async () => {
    const { send } = callerOf(app, "acme");
    expect((await send("GET", "/compose")).status).toBe(405);
    const refused = await sendWith(app, {}, "GET", "/compose");
    expect([refused.status, refused.headers.get("allow")]).toEqual([401, null]);
    expect((await sendWith(app, {}, "GET", "/webhooks/mem0")).status).toBe(401);
  });

  it.each([
    ["GET", "/nope"],
    ["POST", "/compose/"],
    ["GET", "/users/ada/memories"],
  ])("%s %s is 404 all the same: no method would do", async (method, path) => {
    const answer = await sendWith(app, {}, method, path);
    expect([answer.status, answer.headers.get("allow")]).toEqual([404, null]);
  });
});
