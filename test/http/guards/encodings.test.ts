import * as zlib from "node:zlib";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import { openAiEngine } from "../routes/openai-engine.js";
import { servedApp } from "../server/served-app.js";
import { callerOf } from "./callers.js";

const MAX_BODY_BYTES = 64 * 1024;
/** Node has it from 22.15 on. */
const zstd = Reflect.get(zlib, "zstdCompressSync") as ((bytes: Uint8Array) => Buffer) | undefined;
const ACCEPTED = `${zstd === undefined ? "" : "zstd, "}gzip, br, deflate`;

type Encode = (bytes: Uint8Array) => Buffer;
const ENCODINGS: readonly (readonly [string, Encode])[] = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["GZip", gzipSync],
  ["br", brotliCompressSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ...(zstd === undefined ? [] : [["zstd", zstd] as const]),
  ["identity, gzip", gzipSync],
];

describe("a request body in an encoding", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, times: { limits: { maxBodyBytes: MAX_BODY_BYTES } } });
  const chat = { model: "stub-1", user: "ada", messages: [{ role: "user", content: "Which tea? \u{1f375}" }] };
  const json = Buffer.from(JSON.stringify(chat));
  const send = async (encoding: string, body: Uint8Array, path = "/v1/chat/completions", more = {}) => {
    const headers = { "content-type": "application/json", "content-encoding": encoding, connection: "close", ...more };
    const answer = await fetch(app.base + path, { method: "POST", headers, body: new Uint8Array(body) });
    return { status: answer.status, headers: answer.headers, json: (await answer.json()) as { detail?: string } };
  };

  it.each(ENCODINGS)("is decoded: %s", async (encoding, encode) => {
    for (const path of ["chat/completions", "completions"]) {
      const answer = await send(encoding, encode(json), `/v1/${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
      const [request] = engine.requests.slice(-1);
      expect(JSON.parse(request?.raw ?? "")).toEqual(chat);
      expect(request?.headers["content-encoding"]).toBeUndefined();
    }
    const composed = await send(
      encoding,
      encode(Buffer.from('{"user_id":"ada","query":"Tea?","memories":[]}')),
      "/compose",
    );
    expect(composed.status).toBe(200);
  });

  it.each(ENCODINGS)("is rejected where it is something else: %s", async (encoding, encode) => {
    const encoded = encode(json);
    const wrong = [json, encoded.subarray(0, -3), Buffer.concat([encoded, Buffer.from("more")]), Buffer.from([1, 2])];
    for (const body of wrong) {
      const { status, json: problem } = await send(encoding, body);
      expect(status).toBe(400);
      expect(openAiProblemSchema.parse(problem).detail).toMatch(/^body: is not \w+/);
    }
    const { status, json: problem } = await send(encoding, encode(Buffer.from("{")));
    expect([status, problem.detail]).toEqual([400, "body: is not JSON"]);
    expect(engine.requests).toEqual([]);
  });

  it.each(ENCODINGS)("is not decoded beyond the limit: %s", async (encoding, encode) => {
    const bomb = Buffer.alloc(64 * 1024 * 1024, " ");
    const { status, json: problem } = await send(encoding, encode(bomb));
    expect([status, problem.detail]).toEqual([413, `body: must be at most ${MAX_BODY_BYTES} bytes`]);
  });

  it.each(["snappy", "compress", "gzip, snappy", "gzip, gzip", ...(zstd === undefined ? ["zstd"] : [])])(
    "that is not supported is rejected with those that are: %s",
    async (encoding) => {
      const { status, headers, json: problem } = await send(encoding, gzipSync(json));
      expect([status, headers.get("accept-encoding")]).toEqual([415, ACCEPTED]);
      expect(openAiProblemSchema.parse(problem)).toMatchObject({ errors: [{ field: "content-encoding" }] });
    },
  );

  it("is not decoded without a key", async () => {
    callerOf(app, "acme");
    expect((await send("gzip", gzipSync(json))).status).toBe(401);
  });
});

describe("long bodies in an encoding", () => {
  const app = servedApp({ upstream: openAiEngine(), times: { limits: { maxBodyBytes: 32 * 1024 * 1024 } } });

  it("do not hold up a short one that comes after them", async () => {
    const bomb = gzipSync(Buffer.alloc(40 * 1024 * 1024, " "));
    const short = gzipSync('{"user_id":"ada","query":"Tea?","memories":[]}');
    const done: number[] = [];
    const send = async (body: Buffer) => {
      const headers = { "content-type": "application/json", "content-encoding": "gzip" };
      const { status } = await fetch(`${app.base}/compose`, { method: "POST", headers, body: new Uint8Array(body) });
      done.push(status);
    };
    await Promise.all([...Array.from({ length: 30 }, () => send(bomb)), send(short)]);
    expect(done.filter((status) => status === 200)).toHaveLength(1);
    expect(done.indexOf(200)).toBeLessThan(20);
  });
});
