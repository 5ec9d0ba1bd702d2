import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { OpenAPIHono } from "@hono/zod-openapi";
import { answerProblem, problem } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/request.js";

/*
 * `GET /dashboard` and `GET /docs`: two pages with their scripts, the same bytes for everybody. They hold no data and need no key: the dashboard
 * requests one where keys are in use, and reads the HTTP API with it; `/docs` shows the OpenAPI document.
 */

/** Where `npm run build` puts the page; equally deep from the sources and from the compiled files. */
const BUILT = new URL("../../../dist/dashboard/", import.meta.url);

/** Only this service's scripts and data. */
const OWN_PARTS = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
/** Nothing inline, no HTML from strings. Styles set by property are exempt (CSP3, §8.3). */
const DASHBOARD = `${OWN_PARTS}; style-src 'self'; img-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'`;
/** Its library sets styles of its own. */
const DOCS = `${OWN_PARTS}; style-src 'unsafe-inline'; img-src 'self' data:`;

const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const PARTS = [
  { path: "/dashboard", file: "page.html", type: HTML, policy: DASHBOARD },
  { path: "/dashboard/page.js", file: "page.js", type: SCRIPT, policy: DASHBOARD },
  { path: "/dashboard/page.css", file: "page.css", type: "text/css; charset=utf-8", policy: DASHBOARD },
  { path: "/dashboard/icon.svg", file: "icon.svg", type: "image/svg+xml", policy: DASHBOARD },
  { path: "/docs", file: "api.html", type: HTML, policy: DOCS },
  { path: "/docs/api.js", file: "api.js", type: SCRIPT, policy: DOCS },
] as const;

/** Adds the pages, to the first of which `/` leads. Their files are read once, now: a file replaced later is not served. */
export function addPages(app: OpenAPIHono<HttpEnvironment>): void {
  app.get("/", (c) => c.redirect("/dashboard"));
  for (const { path, file, type, policy } of PARTS) {
    const body = builtFile(file);
    if (body === null) {
      const detail = "the page is not built: npm run build";
      app.get(path, (c) => answerProblem(c, problem(404, detail)));
      continue;
    }
    const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
    const headers = { "content-security-policy": policy, "cache-control": "no-cache", etag };
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
