import type { McpPackages } from "../http/routes/mcp-route.js";
import { missingPackages } from "./package.js";

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
