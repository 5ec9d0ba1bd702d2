import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { callerOf, rawGet } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";

/** The dashboard and its parts. Tests run on what `npm run build` made. */
const PARTS = [
  ["/dashboard", "text/html; charset=utf-8"],
  ["/dashboard/page.js", "text/javascript; charset=utf-8"],
  ["/dashboard/page.css", "text/css; charset=utf-8"],
  ["/dashboard/icon.svg", "image/svg+xml"],
] as const;

const MOST_BYTES = 150_000;
const MOST_BYTES_OF_DOCS = 1_000_000;

function directivesOf(policy: string | null): ReadonlyMap<string, string> {
  const directives = (policy ?? "").split(";").map((directive) => directive.trim().split(/ (.*)/s, 2));
  return new Map(directives.map(([name = "", value = ""]) => [name, value]));
}

describe("GET /dashboard", () => {
  const app = servedApp();

  it.each(PARTS)("serves %s as it was built, and nothing of it needs a key", async (path, type) => {
    const { key } = callerOf(app, "acme");
    const open = await fetch(app.base + path);
    expect(open.status).toBe(200);
    expect(open.headers.get("content-type")).toBe(type);
    const withKey = await fetch(app.base + path, { headers: { authorization: `Bearer ${key}` } });
    expect(await withKey.text()).toBe(await open.text());
    expect((await app.send("GET", "/metrics")).status).toBe(401);
  });

  it("is small, and asks nobody else for anything", async () => {
    const texts = await Promise.all(PARTS.map(async ([path]) => (await fetch(app.base + path)).text()));
    expect(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)).toBeLessThan(MOST_BYTES);
    const [html = "", , style = ""] = texts;
    const asked = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, target]) => target);
    expect(asked.length).toBeGreaterThan(2);
    expect(asked.filter((target) => !target?.startsWith("/"))).toEqual([]);
    expect(style).not.toMatch(/url\(\s*["']?(?:https?:)?\/\//);
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
    const sources = readdirSync("src/dashboard").filter((name) => name.endsWith(".ts"));
    const own = sources.map((name) => readFileSync(join("src/dashboard", name), "utf8")).join("\n");
    expect(own).not.toMatch(/\b(?:dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write)\b/);
  });

  it("lets the page run its own script and style only, make no HTML of strings, and be framed by nobody", async () => {
    const { headers } = await fetch(`${app.base}/dashboard`);
    const policy = directivesOf(headers.get("content-security-policy"));
    expect(policy.get("default-src")).toBe("'none'");
    for (const name of ["script-src", "style-src", "connect-src", "img-src"]) expect(policy.get(name)).toBe("'self'");
    expect([...policy.values()].join(" ")).not.toMatch(/unsafe|https?:|\*|data:/);
    expect(policy.get("require-trusted-types-for")).toBe("'script'");
    expect(policy.get("frame-ancestors")).toBe("'none'");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  });

  it("is not sent again where the browser has it", async () => {
    const first = await fetch(`${app.base}/dashboard/page.js`);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    await first.text();
    const again = await fetch(`${app.base}/dashboard/page.js`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  it("has no other files below it", async () => {
    for (const path of [
      "/dashboard/",
      "/dashboard/page.ts",
      "/dashboard/../package.json",
      "/dashboard/%2e%2e/main.js",
    ]) {
      expect((await rawGet(app.base, path, {})).status).toBe(404);
    }
    expect((await app.send("POST", "/dashboard", {})).status).toBe(405);
  });
});

describe("GET / and /docs", () => {
  const app = servedApp();

  it("leads to the dashboard, and shows the API without anybody else's script, data or key", async () => {
    const { key } = callerOf(app, "acme");
    const root = await fetch(`${app.base}/`, { redirect: "manual" });
    expect([root.status, root.headers.get("location")]).toEqual([302, "/dashboard"]);
    const page = await fetch(`${app.base}/docs`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const policy = directivesOf(page.headers.get("content-security-policy"));
    expect(policy.get("default-src")).toBe("'none'");
    for (const name of ["script-src", "connect-src"]) expect(policy.get(name)).toBe("'self'");
    const html = await page.text();
    const asked = [...html.matchAll(/(?:src|href|spec-url)="([^"]*)"/g)].map(([, target = ""]) => target);
    expect(asked).toEqual(expect.arrayContaining(["/docs/api.js", "/openapi.json"]));
    for (const target of asked) expect((await fetch(app.base + target)).status, target).toBe(200);
    const script = await (await fetch(`${app.base}/docs/api.js`)).text();
    expect(Buffer.byteLength(script)).toBeLessThan(MOST_BYTES_OF_DOCS);
    expect((await fetch(`${app.base}/docs/api.ts`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(404);
  });
});
