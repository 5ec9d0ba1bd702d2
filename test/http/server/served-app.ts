import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import type { z } from "zod";
import { readSettings } from "../../../src/cli/settings.js";
import { composeResult } from "../../../src/http/contracts/compose-contract.js";
import { type Problem, problemSchema } from "../../../src/http/problems/problem.js";
import type { RequestLog } from "../../../src/http/requests/request.js";
import type { MemorySource } from "../../../src/memory/memory-source.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { type ShortTimes, startApp } from "./started-app.js";

export { type StartedApp, startApp } from "./started-app.js";

/** The answer of `POST /compose`. */
export type Composed = z.output<typeof composeResult>;

/** What came back over the socket. */
export interface Exchange {
  readonly status: number;
  readonly contentType: string | null;
  readonly text: string;
}

/** The app on a socket of the loopback, over a real database; a fresh one for every test. */
export interface ServedApp {
  readonly memprefix: Memprefix;
  readonly dataDir: string;
  readonly database: string;
  /** Where it listens. */
  readonly base: string;
  readonly log: RequestLog[];
  readonly faults: unknown[];
  /** Sends a body as it is, or as JSON where it is neither text nor bytes. */
  send(method: string, path: string, body?: unknown, contentType?: string | null): Promise<Exchange>;
  /** Composes, and checks the answer against the contract. */
  compose(body: Readonly<Record<string, unknown>>): Promise<Composed>;
}

/** How the app is put together for a test file. */
export interface Serving {
  /** Default: none, so that memories come in the request. */
  readonly source?: (dataDir: string) => MemorySource;
  /** The engine behind `/v1`, whose address may change with every test. Default: none. */
  readonly upstream?: { readonly url: string };
  readonly times?: ShortTimes;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Serves the app before every test of the file, and takes it and its files away after. */
export function servedApp(serving: Serving = {}): ServedApp {
  const log: RequestLog[] = [];
  const faults: unknown[] = [];
  let dataDir = "";
  let base = "";
  let memprefix: Memprefix;
  let close = async () => {};

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "memprefix-http-"));
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: dataDir,
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_UPSTREAM_URL: serving.upstream?.url,
      ...serving.environment,
    });
    const source = serving.source?.(dataDir) ?? null;
    const seen = { log, faults };
    ({ memprefix, base, close } = await startApp(settings, source, seen, undefined, serving.times));
  });
  afterEach(async () => {
    await close();
    await rm(dataDir, { recursive: true });
    log.length = 0;
    faults.length = 0;
  });

  const send: ServedApp["send"] = async (method, path, body, contentType = "application/json") => {
    const answer = await fetch(base + path, {
      method,
      ...(body === undefined ? {} : { body: bytesOf(body), duplex: "half" }),
      headers: { connection: "close", ...(contentType === null ? {} : { "content-type": contentType }) },
    });
    return { status: answer.status, contentType: answer.headers.get("content-type"), text: await answer.text() };
  };

  return {
    get memprefix() {
      return memprefix;
    },
    get dataDir() {
      return dataDir;
    },
    get database() {
      return join(dataDir, "memprefix.db");
    },
    get base() {
      return base;
    },
    log,
    faults,
    send,
    async compose(body) {
      const exchange = await send("POST", "/compose", body);
      expect(exchange).toMatchObject({ status: 200, contentType: "application/json" });
      return composedOf(exchange);
    },
  };
}

/** The answer by the exported contract, which has to name every field of it. */
export function composedOf({ text }: Exchange): Composed {
  const json: unknown = JSON.parse(text);
  const answer = composeResult.parse(json);
  expect(answer).toEqual(json);
  return answer;
}

/** The problem of an exchange, after a check that it is one. */
export function problemOf({ status, contentType, text }: Exchange): Problem {
  expect(contentType).toBe("application/problem+json");
  const json: unknown = JSON.parse(text);
  const problem = problemSchema.parse(json);
  expect(problem).toEqual(json);
  expect(problem).toMatchObject({ type: "about:blank", status });
  return problem;
}

/** Bytes have no content type of their own, so that what a test names is all that is sent. */
function bytesOf(body: unknown): Uint8Array<ArrayBuffer> | ReadableStream {
  if (body instanceof ReadableStream) return body;
  if (body instanceof Uint8Array) return new Uint8Array(body);
  return new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body));
}
