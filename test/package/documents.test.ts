import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { commentsOf } from "../../.ci/module-imports.js";
import { BENCHES, OF_THE_BUILD } from "../../bench/benches.js";

const PROJECT = resolve(import.meta.dirname, "../..");

/** What is in the project's folder and not in the repository. */
const IGNORED = new Set([".git", ...readFileSync(join(PROJECT, ".gitignore"), "utf8").split(/\/?\n/)]);

/** Paths in tests that are made up, or names that look like paths. */
const MADE_UP = new Set([
  "test/cli/keys-command.test.ts",
  "test/memory/memory-source.suite.ts",
  "test/package/documents.test.ts",
]);

const PATHS = filesUnder("");
/** With what an evaluation writes. */
const NAMES = new Set([...PATHS.map((path) => posix.basename(path)), "report.md"]);
const READABLE = PATHS.filter((path) => /\.(?:ts|md)$/.test(path));
const DOCUMENTS = READABLE.filter((path) => path.endsWith(".md"));
const TEXTS = PATHS.filter((path) => /\.(?:ts|md|json|html)$|^\.ci\//.test(path) && path !== "package-lock.json");

function filesUnder(folder: string): string[] {
  return readdirSync(join(PROJECT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (IGNORED.has(entry.name)) return [];
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

const isThere = (path: string) => existsSync(join(PROJECT, path));
const textOf = (path: string) => readFileSync(join(PROJECT, path), "utf8");

/** The comments of a module, as one line, so that a citation may go over two. */
function commentsIn(module: string): string {
  return commentsOf(module)
    .join("\n")
    .replace(/\s*\n\s*(?:\*(?!\/)|\/\/)?\s*/g, " ");
}

/** What each file says to its readers: a document's text, a module's comments. */
const PROSE = new Map(
  READABLE.map((path) => [path, path.endsWith(".md") ? textOf(path).replace(/\s+/g, " ") : commentsIn(textOf(path))]),
);
const proseOf = (path: string) => PROSE.get(path) ?? "";

/** Files and folders that prose names from the project's folder: `src/core/text/ids.ts`, `test/hostile/`. */
function pathsIn(prose: string): string[] {
  const named = /(?<![\w./~@-])(?:src|test|bench|docs|migrations|examples|\.ci)\/[\w./-]*[\w/]/g;
  return (prose.match(named) ?? []).map((path) => path.replace(/\/$/, ""));
}

/** Modules and documents that prose names without their folder: `ids.ts`. */
function namesIn(prose: string): string[] {
  return prose.match(/(?<![\w./@-])[\w-]+(?:\.[\w-]+)*\.(?:ts|md)\b/g) ?? [];
}

/** Headings that prose cites: `docs/ordering.md, "Batches"`. */
function citationsIn(prose: string): { readonly document: string; readonly title: string }[] {
  const cited = prose.matchAll(/(docs\/[\w/-]+\.md)`?,? "([^"]+)"/g);
  return [...cited].map(([, document = "", title = ""]) => ({ document, title }));
}

function benchesIn(prose: string): string[] {
  return [...prose.matchAll(/npm run bench -- ([\w-]+)/g)].map(([, bench = ""]) => bench);
}

function scriptsIn(prose: string): string[] {
  return [...prose.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, script = ""]) => script);
}

const withoutCode = (document: string) => document.replace(/^```[\s\S]*?^```$/gm, "");

/** Links to files of the repository, as a document at a path has them, less those in code. */
function linksIn(document: string, at: string): { readonly path: string; readonly anchor: string | undefined }[] {
  const text = withoutCode(document).replace(/`[^`\n]*`/g, "");
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links
    .filter((link) => !/^[a-z]+:/i.test(link))
    .map((link) => {
      const [path = "", anchor] = link.split("#");
      return { path: path === "" ? at : posix.join(posix.dirname(at), path), anchor };
    });
}

function titlesIn(document: string): string[] {
  const lines = [...withoutCode(document).matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => title);
  return lines.map((title) => title.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, ""));
}

/** A heading's name in links, as GitHub makes it. */
function anchorOf(title: string): string {
  const kept = title.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "");
  return kept.replace(/\s/g, "-");
}

/** Relative paths upwards, from the folder of the file that has them. */
function upwardIn(text: string, at: string): string[] {
  const upward = text.match(/(?<![\w./])(?:\.\.\/)+[\w@./-]*/g) ?? [];
  return upward.map((path) => posix.join(posix.dirname(at), path));
}

/** The file that a path in code means: what is built comes from a source, and modules import each other as they will be built. */
function sourceOf(path: string): string {
  return path.replace(/^dist\//, "src/").replace(/\.js$/, ".ts");
}

/** Everything wrong with some files, after the name of each. */
function wrongIn(files: readonly string[], find: (path: string) => readonly string[]): string[] {
  return files.flatMap((path) => [...new Set(find(path))].map((wrong) => `${path}: ${wrong}`));
}

/** Words of an older prose of this project, with the field's. */
const DIALECT: Readonly<Record<string, string>> = {
  anew: "again",
  asks: "requests, needs",
  behind: "after",
  lends: "acquires",
  lent: "acquired",
  noticed: "observed, detected",
  notices: "observes, detects",
  tell: "distinguish, report",
  tells: "distinguishes, reports",
  told: "given, reported",
};

describe("comments of the source", () => {
  it("have the field's words", () => {
    const words = new RegExp(`\\b(?:${Object.keys(DIALECT).join("|")})\\b`, "gi");
    const sources = READABLE.filter((path) => /^src\/.*\.ts$/.test(path));
    const found = (path: string) => proseOf(path).match(words) ?? [];
    const said = (word: string) => `"${word}": say ${DIALECT[word.toLowerCase()]}`;
    expect(wrongIn(sources, (path) => found(path).map(said))).toEqual([]);
  });
});

describe("what documents and comments name", () => {
  it("is there: files and folders by their path", () => {
    expect(wrongIn(READABLE, (path) => pathsIn(proseOf(path)).filter((named) => !isThere(named)))).toEqual([]);
  });

  it("is there: files by their name alone", () => {
    const missing = (name: string) => !NAMES.has(name);
    expect(wrongIn(READABLE, (path) => namesIn(proseOf(path)).filter(missing))).toEqual([]);
  });

  it("is there: files and headings by a link", () => {
    const broken = (at: string) =>
      linksIn(textOf(at), at).flatMap(({ path, anchor }) => {
        if (!isThere(path)) return [path];
        const isKnown = anchor === undefined || titlesIn(textOf(path)).map(anchorOf).includes(anchor);
        return isKnown ? [] : [`${path}#${anchor}`];
      });
    expect(wrongIn(DOCUMENTS, broken)).toEqual([]);
  });

  it("is there: headings by their words", () => {
    const missing = (at: string) =>
      citationsIn(proseOf(at))
        .filter(({ document, title }) => !isThere(document) || !titlesIn(textOf(document)).includes(title))
        .map(({ document, title }) => `${document}, "${title}"`);
    expect(wrongIn(READABLE, missing)).toEqual([]);
  });

  it("is there: scripts", () => {
    const { scripts } = JSON.parse(textOf("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
    const missing = (at: string) => scriptsIn(proseOf(at)).filter((script) => !(script in scripts));
    expect(wrongIn(READABLE, (at) => missing(at).map((script) => `npm run ${script}`))).toEqual([]);
  });

  it("is there: benches, of which each has its program", () => {
    const missing = (at: string) => benchesIn(proseOf(at)).filter((bench) => !(bench in BENCHES) && bench !== "NAME");
    expect(wrongIn(READABLE, missing)).toEqual([]);
    expect(Object.keys(BENCHES).filter((bench) => !isThere(`bench/${bench}.ts`))).toEqual([]);
    expect([...OF_THE_BUILD].filter((bench) => !(bench in BENCHES))).toEqual([]);
  });
});

describe("links", () => {
  const { files } = JSON.parse(textOf("package.json")) as { readonly files: readonly string[] };
  const isPacked = (path: string) => files.some((packed) => path === packed || path.startsWith(`${packed}/`));
  const linkedIn = (at: string) => linksIn(textOf(at), at).map(({ path }) => path);
  const pages = DOCUMENTS.filter((path) => path.startsWith("docs/"));

  it("of the README and of pages in the package lead to files in the package", () => {
    expect(linkedIn("README.md").length).toBeGreaterThan(5);
    expect(wrongIn(["README.md", ...pages], (at) => linkedIn(at).filter((path) => !isPacked(path)))).toEqual([]);
  });

  it("of the index name every page", () => {
    const named = linkedIn("docs/README.md").map((path) => path.replace(/\/$/, ""));
    const isNamed = (path: string) => named.some((name) => path === name || path.startsWith(`${name}/`));
    expect(pages.filter((path) => path !== "docs/README.md" && !isNamed(path))).toEqual([]);
  });

  it("leave the README short enough to be read at once: 8 KB", () => {
    expect(Buffer.byteLength(textOf("README.md"))).toBeLessThanOrEqual(8 * 1024);
  });
});

describe("nothing in the repository", () => {
  it("leads out of it, or to a file that it has not", () => {
    // What checks keep between runs is made by the first of them.
    const isKept = (path: string) => path.startsWith(".tmp/");
    const leading = (at: string) =>
      upwardIn(textOf(at), at).filter((path) => !isThere(sourceOf(path)) && !isThere(path) && !isKept(path));
    const looked = TEXTS.filter((path) => !MADE_UP.has(path) && !path.startsWith("migrations/"));
    expect(wrongIn(looked, leading)).toEqual([]);
  });

  it("names a module of the build that has no source", () => {
    const built = (text: string) => text.match(/(?<![\w.-])dist\/[\w-]+\/[\w/-]+\.js\b/g) ?? [];
    expect(wrongIn(TEXTS, (at) => built(textOf(at)).filter((path) => !isThere(sourceOf(path))))).toEqual([]);
  });

  it("names a place on somebody's machine", () => {
    const places = /(?<![\w.:/-])\/(?:home|mnt|root|tmp|Users|work|workspace)\/[\w.]+/g;
    expect(wrongIn(TEXTS, (at) => textOf(at).match(places) ?? [])).toEqual([]);
  });
});

describe("the internals", () => {
  const folder = "docs/internals";

  it("describe every folder of every room, rooms apart", () => {
    const described = [...textOf("CONTRIBUTING.md").matchAll(/^\| `([\w-]+\/[\w-]+)\/` \|/gm)].map(([, at]) => at);
    const folders = PATHS.map((path) => /^src\/([\w-]+\/[\w-]+)\//.exec(path)?.[1]).filter((at) => at !== undefined);
    expect(described.toSorted()).toEqual([...new Set(folders)].sort());
  });

  it("list folders in the order that the test of imports holds them to", () => {
    const rows = [...textOf("CONTRIBUTING.md").matchAll(/^\| `([\w-]+)\/([\w-]+)\/` \|/gm)];
    const held = /const FOLDERS[\s\S]*?^\};$/m.exec(textOf("test/imports.test.ts"))?.[0] ?? "";
    const orders = [...held.matchAll(/^ {2}(\w+): \[([^\]]*)\],$/gm)];
    expect(orders.length).toBeGreaterThan(0);
    for (const [, room, order = ""] of orders) {
      const listed = rows.filter(([, of]) => of === room).map(([, , name]) => name);
      expect(listed, room).toEqual(order.match(/[\w-]+/g));
    }
  });

  it("explain words that the code has: each name stands in the file that is named beside it", () => {
    const rows = textOf(`${folder}/glossary.md`).split("\n");
    const named = rows.flatMap((row) => {
      const cell = row.split("|").at(-2) ?? "";
      return [...cell.matchAll(/((?:`\w+`, )*`\w+`) in `(src\/[^`]+)`/g)].flatMap(([, names = "", path = ""]) =>
        [...names.matchAll(/\w+/g)].map(([name]) => ({ name, path })),
      );
    });
    expect(named.length).toBeGreaterThan(40);
    const missing = named.filter(({ name, path }) => !isThere(path) || !new RegExp(`\\b${name}\\b`).test(textOf(path)));
    expect(missing).toEqual([]);
  });

  it("have decisions that are short and numbered", () => {
    const [, ...records] = textOf(`${folder}/decisions.md`).split(/^## /m);
    expect(records.length).toBeGreaterThan(0);
    for (const [at, record] of records.entries()) {
      expect(record.startsWith(`${at + 1}. `), record).toBe(true);
      expect(Buffer.byteLength(record), record).toBeLessThanOrEqual(800);
    }
  });
});
