import { PassThrough, type Readable } from "node:stream";
import { parsedJson } from "../core/text/json.js";
import type { McpPackages } from "../http/routes/mcp-route.js";
import { type Invocation, onStop } from "./invocation.js";
import { missingPackages } from "./package.js";
import { addressOf, readSettings, UsageError } from "./settings.js";

/** Loads MCP's packages; `missing` says what to install. */
export async function loadMcp(): Promise<McpPackages | { readonly missing: string }> {
  const missing = missingPackages("mcp");
  if (missing !== null) return { missing };
  const [{ Server }, { WebStandardStreamableHTTPServerTransport: Transport }, types] = await Promise.all([
    import("@modelcontextprotocol/sdk/server/index.js"),
    import("@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js"),
    import("@modelcontextprotocol/sdk/types.js"),
  ]);
  return { Server, Transport, callTool: types.CallToolRequestSchema, listTools: types.ListToolsRequestSchema };
}

/**
 * Serves MCP on standard input and output, in lines, for a running service: posts each message to its `/mcp`. Resolves when the input has
 * ended and everything is answered.
 */
export async function runMcp(call: Invocation): Promise<void> {
  const settings = readSettings(call.env);
  // The variables of memprefix's other clients; an empty one counts as absent.
  const base = call.env["MEMPREFIX_URL"] || addressOf(settings);
  const user = call.env["MEMPREFIX_USER"] || undefined;
  if (!URL.canParse("/mcp", base))
    throw new UsageError([{ field: "MEMPREFIX_URL", message: "must be an http or https address" }]);
  // A header has no other characters and loses blanks at its ends: it would name another user.
  if (user !== undefined && !/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(user)) {
    const message = "must be printable ASCII that no blank begins or ends";
    throw new UsageError([{ field: "MEMPREFIX_USER", message }]);
  }
  const { apiKey } = settings;
  const to = {
    url: new URL(`${base.replace(/\/+$/, "")}/mcp`),
    headers: {
      "content-type": "application/json",
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(user === undefined ? {} : { "x-memprefix-user": user }),
    },
  };
  const input = call.stdin.pipe(new PassThrough());
  call.stdin.once("error", (error) => input.destroy(error));
  const ignore = onStop(call.signals, () => {
    call.stdin.unpipe(input);
    input.end();
  });
  const sending = new Set<Promise<void>>();
  for await (const line of linesOf(input)) {
    const sent = relayed(line, to).then((answer) => {
      if (answer !== null) call.print(answer);
    });
    sending.add(sent);
    void sent.finally(() => sending.delete(sent));
  }
  ignore();
  await Promise.all(sending);
}

/** Lines that are not blank. Node's readline also breaks at U+2028, which JSON may hold unescaped. */
async function* linesOf(input: Readable): AsyncGenerator<string, void, undefined> {
  let rest = "";
  for await (const text of input.setEncoding("utf8")) {
    const lines = `${rest}${text}`.split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line.trim() !== "");
  }
  if (rest.trim() !== "") yield rest;
}

/** The answer to a message, on one line; null: it takes none. Never rejects: an error is an answer. */
async function relayed(
  line: string,
  { url, headers }: { readonly url: URL; readonly headers: Readonly<Record<string, string>> },
): Promise<string | null> {
  const failed = (message: string) => {
    const id = idIn(line);
    return id === undefined ? null : JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message } });
  };
  try {
    const answer = await fetch(url, { method: "POST", headers, body: line });
    const body = await answer.text();
    if (answer.status === 202) return null;
    const json: unknown = JSON.parse(body);
    if (answer.ok || isRpc(json)) return JSON.stringify(json);
    const { title, detail } = json as { readonly title?: unknown; readonly detail?: unknown };
    return failed(typeof title === "string" ? `${title}: ${String(detail)}` : notMemprefix(url));
  } catch (error) {
    if (error instanceof SyntaxError) return failed(notMemprefix(url));
    return failed(`no memprefix answers at ${url.origin}: memprefix serve starts it`);
  }
}

const notMemprefix = ({ origin }: URL) => `${origin} answers, and is not memprefix`;

function isRpc(json: unknown): boolean {
  return typeof json === "object" && json !== null && "jsonrpc" in json;
}

/** A request's id; null where it cannot be read; undefined: a notification, which takes no answer. */
function idIn(line: string): string | number | null | undefined {
  const call = parsedJson(line) as { readonly id?: string | number } | null | undefined;
  return call == null ? null : call.id;
}
