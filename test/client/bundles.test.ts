import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { runInNewContext } from "node:vm";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { ROOT } from "../docs/pages.js";
import { servedApp } from "../http/server/served-app.js";

/** What browsers and workers have, and nothing of Node's: no `process`, `Buffer`, `require` or `setImmediate`. */
const WEB_APIS = {
  ...{
    AbortController,
    AbortSignal,
    Headers,
    ReadableStream,
    Request,
    Response,
    TextDecoder,
    TextEncoder,
    URL,
    URLSearchParams,
  },
  ...{ btoa, console, fetch },
};

const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { dependencies: object };
/** What the library's own modules need besides. A bundle of all that takes seconds. */
const PACKAGES = Object.keys(dependencies).flatMap((name) => [name, `${name}/*`]);

/** Bundles a module of the built package as for a browser. Throws where it needs anything that no browser has. */
async function bundled(
  source: string,
  external: readonly string[] = [],
): Promise<{ readonly code: string; readonly modules: readonly string[] }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: source, resolveDir: ROOT },
    bundle: true,
    external: [...external],
    format: "iife",
    globalName: "bundle",
    platform: "browser",
    minify: true,
    metafile: true,
    write: false,
    logLevel: "silent",
  });
  const modules = Object.keys(metafile.inputs).filter((path) => path !== "<stdin>");
  return { code: outputFiles.map(({ text }) => text).join(""), modules };
}

/** Runs a bundle where there are only Web APIs, and gives what its `run` gives. */
async function inWorker(source: string, given: unknown): Promise<unknown> {
  const { code, modules } = await bundled(source);
  expect(modules.filter((path) => !/^(?:dist|node_modules\/@noble\/hashes)\//.test(path))).toEqual([]);
  expect(modules).not.toContain("dist/index.js");
  const answer = await runInNewContext(`${code}\nbundle.run(${JSON.stringify(given)})`, { ...WEB_APIS });
  return JSON.parse(JSON.stringify(answer));
}

/** A prompt and its digest, and what runs it. */
const COMPOSING = `
import {
  compose, DEFAULT_SCOPE_BOUNDS, digestOf, EMPTY_SCOPE, ENGINE_MODELS, endlessLookup, prefixExact, ScopeState,
} from "memprefix/core";
export function run() {
  const countTokens = (text) => text.length;
  const state = new ScopeState(EMPTY_SCOPE, countTokens, DEFAULT_SCOPE_BOUNDS);
  const { messages } = compose(state, {
    conversation: null,
    messages: [{ role: "user", content: "Où ça ?" }],
    memories: [{ id: "m-1", text: "in Paris" }, { id: "m-2", text: "à Rome 🏛" }],
    policy: prefixExact,
    cache: endlessLookup(),
    now: 0,
    memoryBudgetTokens: null,
    retention: "keep",
    engine: ENGINE_MODELS.gpu,
    annotations: true,
    countTokens,
    isOurs: () => false,
  });
  return { messages, digest: digestOf(JSON.stringify(messages)), runtime: typeof process };
}
`;

describe("a bundle for browsers and workers", () => {
  const app = servedApp();

  it("of memprefix/core composes there as in Node, with the same digests", async () => {
    const core = JSON.stringify(pathToFileURL(join(ROOT, "dist/core/index.js")));
    const inNode = encodeURIComponent(COMPOSING.replace('"memprefix/core"', core));
    const { run } = (await import(`data:text/javascript,${inNode}`)) as { run(): object };
    expect(run()).toMatchObject({ runtime: "object" });
    expect(await inWorker(COMPOSING, null)).toEqual({ ...run(), runtime: "undefined" });
  });

  it("of memprefix/client talks to a service", async () => {
    const source = `
      import { createMemprefixClient, MemprefixError } from "memprefix/client";
      export async function run(url) {
        const memprefix = createMemprefixClient({ url });
        const { requestId, messages } = await memprefix.compose({ userId: "ana", query: "Where?", memories: [{ id: "m", memory: "in Paris" }] });
        const { difference } = await memprefix.feedback({ userId: "ana", requestId, cachedTokens: 0 });
        const { end } = await memprefix.composeBatch({ requests: [{ userId: "ben", query: "Why?" }] });
        const refused = await memprefix.compose({ userId: "" , query: "x" }).catch((error) => error);
        return { messages, difference, end, refused: [refused.status, refused.problem.errors, refused instanceof MemprefixError] };
      }
    `;
    expect(await inWorker(source, app.base)).toEqual({
      messages: [{ role: "user", content: "<memories>\n- in Paris\n</memories>\n\nWhere?" }],
      difference: 0,
      end: { read: 1, found: 1, composed: 1, failed: 0 },
      refused: [422, [{ field: "user_id", message: "must not be empty" }], true],
    });
  });

  it("of an adapter's base composes through the client", async () => {
    const source = `
      import { createMemprefixClient } from "memprefix/client";
      import { composeCall } from "./dist/integrations/composing.js";
      export async function run(url) {
        const memories = () => [{ id: "m", memory: "in Paris" }];
        const options = { memprefix: createMemprefixClient({ url }), userId: "ana", memories };
        const call = await composeCall(options, null, [{ role: "user", content: "Where?" }]);
        await call.report({ promptTokens: 20, cachedTokens: 0 });
        return call.messages;
      }
    `;
    expect(await inWorker(source, app.base)).toHaveLength(1);
    const [report] = app.log.filter(({ route }) => route === "/feedback");
    expect(report).toMatchObject({ status: 200 });
  });

  it("of the library cannot be made: it opens files", async () => {
    await expect(bundled('export { createMemprefix } from "memprefix";', PACKAGES)).rejects.toThrow(
      /Could not resolve "node:/,
    );
  });

  it("is small", async () => {
    const kilobytes = async (name: string) => {
      const { code } = await bundled(`export * from ${JSON.stringify(name)};`);
      const size = Math.ceil(Buffer.byteLength(code) / 1_000);
      console.log(`${name}: ${size} kB`);
      return size;
    };
    expect(await kilobytes("memprefix/client")).toBeLessThan(12);
    expect(await kilobytes("memprefix/core")).toBeLessThan(200);
  });
});
