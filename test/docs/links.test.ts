import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ROOT, readPages } from "./pages.js";

const { files } = z
  .object({ files: z.array(z.string()) })
  .parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
const pages = readPages();

/** What a page links to, images included; code is no link. */
function linksIn(text: string): readonly string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, "").replaceAll(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? "");
}

/** The fragments by which a page's headings are linked to. */
function anchorsOf(path: string): ReadonlySet<string> {
  const text = readFileSync(join(ROOT, path), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading ?? "");
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** What is wrong with a link to a file of the project; null where it leads somewhere. */
function wrong(path: string, fragment: string | undefined): string | null {
  if (!existsSync(join(ROOT, path))) return "there is no such file";
  if (fragment === undefined) return null;
  if (statSync(join(ROOT, path)).isDirectory() || !path.endsWith(".md")) return "only pages have headings";
  return anchorsOf(path).has(fragment) ? null : "there is no such heading";
}

describe("the links of the documentation", () => {
  it.each(pages.map(({ path, text }) => [path, text]))(
    "of %s lead to files and headings that are there",
    (path, text) => {
      const dead = linksIn(text).flatMap((target) => {
        const [address = "", fragment] = target.split("#");
        if (/^(https?|mailto):/.test(address)) return [];
        const file =
          address === "" ? path : normalize(address.startsWith("/") ? address.slice(1) : join(dirname(path), address));
        const problem = wrong(file, fragment);
        return problem === null ? [] : [`${target}: ${problem}`];
      });
      expect(dead).toEqual([]);
    },
  );

  it("of the README lead to files in the package", () => {
    const own = linksIn(pages.find(({ path }) => path === "README.md")?.text ?? "").filter(
      (target) => !target.startsWith("https://"),
    );
    expect(own.length).toBeGreaterThan(5);
    expect(own.filter((path) => !files.some((packed) => path.startsWith(`${packed}/`)))).toEqual([]);
  });

  it("of pages in the package lead to files in the package", () => {
    const outside = pages
      .filter(({ path }) => path.startsWith("docs/"))
      .flatMap(({ path, text }) =>
        linksIn(text)
          .filter((target) => !/^(https?|mailto):/.test(target) && !target.startsWith("#"))
          .map((target) => normalize(join(dirname(path), target.split("#")[0] ?? "")))
          .filter(
            (file) => !["docs/", ...files.map((packed) => `${packed}/`)].some((folder) => file.startsWith(folder)),
          )
          .map((file) => `${path}: ${file}`),
      );
    expect(outside).toEqual([]);
  });

  it("of the index name every page", () => {
    const index = pages.find(({ path }) => path === "docs/README.md")?.text ?? "";
    const named = new Set(linksIn(index).map((target) => normalize(join("docs", target))));
    const isNamed = (path: string) => [...named].some((name) => path === name || path.startsWith(`${name}/`));
    const others = pages.filter(({ path }) => path.startsWith("docs/") && path !== "docs/README.md");
    expect(others.map(({ path }) => path).filter((path) => !isNamed(path))).toEqual([]);
  });

  it("the README is short enough to be read at once: 8 KB", () => {
    expect(Buffer.byteLength(pages.find(({ path }) => path === "README.md")?.text ?? "")).toBeLessThanOrEqual(8 * 1024);
  });
});
