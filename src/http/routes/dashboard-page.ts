import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { OpenAPIHono } from "@hono/zod-openapi";
import { answerProblem, problem } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/request.js";

/*
 * `GET /dashboard`: a page with its script, style and icon, the same bytes for everybody. They hold no data and need no key: the page requests
 * one where keys are in use, and reads the HTTP API with it.
 */

/** Where `npm run build` puts the page; equally deep from the sources and from the compiled files. */
const BUILT = new URL("../../../dist/dashboard/", import.meta.url);

/** Only this service's scripts, styles and data; nothing inline, no HTML from strings. Styles set by property are exempt (CSP3, §8.3). */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const PARTS = [
  { path: "/dashboard", file: "page.html", type: "text/html; charset=utf-8" },
  { path: "/dashboard/page.js", file: "page.js", type: "text/javascript; charset=utf-8" },
  { path: "/dashboard/page.css", file: "page.css", type: "text/css; charset=utf-8" },
  { path: "/dashboard/icon.svg", file: "icon.svg", type: "image/svg+xml" },
] as const;

/** Adds the page. Its files are read once, now: a file replaced later is not served. */
export function addDashboardPage(app: OpenAPIHono<HttpEnvironment>): void {
  for (const { path, file, type } of PARTS) {
    const body = builtFile(file);
    if (body === null) {
      const detail = "the page is not built: npm run build";
      app.get(path, (c) => answerProblem(c, problem(404, detail)));
      continue;
    }
    const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
    const headers = { "content-security-policy": PAGE_POLICY, "cache-control": "no-cache", etag };
    app.get(path, (c) =>
      c.req.header("if-none-match") === etag
        ? c.body(null, 304, headers)
        : c.body(body, 200, { ...headers, "content-type": type }),
    );
  }
}

function builtFile(name: string): string | null {
  try {
    return readFileSync(new URL(name, BUILT), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
