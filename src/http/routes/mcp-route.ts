import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { InvalidRequestError } from "../../service/base/errors.js";
import { fieldIssues, userId } from "../../service/fields/fields.js";
import { readJson } from "../guards/body.js";
import { isFault, problem, problemOf, problemResponse } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addRoute } from "./json-route.js";
import { callTool, listedTools } from "./mcp-tools.js";

/** What the Model Context Protocol is spoken with: parts of its official SDK. */
export interface McpPackages {
  readonly Server: typeof Server;
  readonly Transport: typeof WebStandardStreamableHTTPServerTransport;
  readonly callTool: typeof CallToolRequestSchema;
  readonly listTools: typeof ListToolsRequestSchema;
}

/** Loads them; where they are not installed, `missing` says what to install. */
export type LoadMcp = () => Promise<McpPackages | { readonly missing: string }>;

interface McpParts {
  /** Called by each message: most services get none. */
  readonly load: LoadMcp;
  readonly version: string;
  readonly onFault: (error: unknown) => void;
}

const message = z
  .looseObject({ jsonrpc: z.literal("2.0"), method: z.string().optional() })
  .meta({ id: "McpMessage", description: "A JSON-RPC message of the Model Context Protocol." });

/**
 * `POST /mcp`: the Model Context Protocol's streamable HTTP, without sessions: one message, answered in JSON, by the key and the user of the
 * request. The header `X-Memstem-User` names the user for all tools, which then take none.
 */
export function addMcpRoute(app: OpenAPIHono<HttpEnvironment>, { load, version, onFault }: McpParts): void {
  const described = { method: "post", path: "/mcp", body: message, answer: message } as const;
  const others = { 202: { description: "A notification was taken." } };
  addRoute(app, "callMcp", { ...described, others, isPretty: false }, async (c) => {
    const mcp = await load();
    if ("missing" in mcp) return problemResponse(problem(501, `the Model Context Protocol ${mcp.missing}`));
    const given = await readJson(c);
    if (given instanceof Response) return given;
    const parsed = message.safeParse(given.value);
    if (!parsed.success) throw new InvalidRequestError(fieldIssues(parsed.error));
    const user = c.req.header("x-memstem-user");
    if (user !== undefined && !userId.safeParse(user).success)
      throw new InvalidRequestError([{ field: "x-memstem-user", message: "names no user" }]);
    const { signal } = c.req.raw;
    const server = new mcp.Server({ name: "memstem", version }, { capabilities: { tools: {} } });
    server.setRequestHandler(mcp.listTools, () => ({ tools: [...listedTools(user)] }));
    server.setRequestHandler(mcp.callTool, async ({ params: { name, arguments: args = {} } }) => {
      try {
        const result = await callTool(name, args, user, c.get("memstem"), signal);
        return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: { ...result } };
      } catch (error) {
        const value = problemOf(error);
        if (isFault(error, value)) onFault(error);
        return { isError: true, content: [{ type: "text", text: `${value.title}: ${value.detail}` }] };
      }
    });
    // One for each message: they share nothing, whoever calls.
    const transport = new mcp.Transport({ enableJsonResponse: true });
    await server.connect(transport);
    const { method } = c.req.raw;
    const headers = new Headers(c.req.raw.headers);
    // The SDK refuses clients that take no stream; none is answered.
    headers.set("accept", "application/json, text/event-stream");
    const request = new Request(c.req.url, { method, headers });
    return await transport.handleRequest(request, { parsedBody: given.value });
  });
}
