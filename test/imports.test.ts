import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { codeOf, importsIn } from "../.ci/module-imports.js";

/** What the files of a room may import besides each other. */
interface RoomRule {
  readonly rooms: readonly string[];
  /** Single files of other rooms: their interfaces. */
  readonly files?: readonly string[];
  /** Rooms of which only types may be imported. */
  readonly typesOf?: readonly string[];
}

const ROOMS = [
  "core",
  "threads",
  "store",
  "memory",
  "apis",
  "engines",
  "service",
  "http",
  "client",
  "integrations",
  "dashboard",
  "eval",
  "cli",
];

/** The table of CONTRIBUTING.md, "Folders". */
const RULES: Readonly<Record<string, RoomRule>> = {
  core: { rooms: [] },
  threads: { rooms: [] },
  store: { rooms: ["core", "threads"] },
  memory: { rooms: ["core"] },
  apis: { rooms: ["core"] },
  engines: { rooms: ["core", "apis"] },
  service: {
    rooms: ["core", "apis", "engines"],
    files: ["store/store.ts", "store/prompt-figures.ts", "memory/memory-source.ts", "memory/mem0-answer.ts"],
  },
  http: { rooms: ["service", "apis"], typesOf: ["core"], files: ["core/text/json.ts"] },
  // Names turn by one rule at both ends of the wire.
  client: { rooms: [], typesOf: ["core", "service", "http"], files: ["http/contracts/wire-names.ts"] },
  // They import nothing that a browser or a worker lacks.
  integrations: {
    rooms: ["client"],
    typesOf: ["core", "service"],
    files: ["core/prompt/section.ts", "core/text/json.ts"],
  },
  // The page runs in browsers.
  dashboard: { rooms: ["client"] },
  eval: { rooms: ["service", "engines", "apis", "core"], files: ["memory/memory-source.ts"] },
  cli: { rooms: ROOMS },
  "index.ts": { rooms: ROOMS },
};

/**
 * Folders of a room, lowest first: a folder imports only those above it in its list, and itself. A room that is not named here is flat.
 */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  core: [
    "text",
    "escaping",
    "prompt",
    "cost",
    "blocks",
    "cache",
    "ordering",
    "conversation",
    "batch",
    "routing",
    "published",
    "compose",
    "usage",
  ],
  apis: ["api", "chat", "messages", "responses"],
  engines: ["upstream", "kv-events", "adapters"],
  store: ["sqlite", "postgres"],
  service: ["base", "fields", "scopes", "usage", "learning", "compose", "records", "batch", "chat", "library"],
  http: ["requests", "problems", "guards", "contracts", "routes", "server"],
  eval: ["base", "locomo", "engine", "scores", "replay", "run", "measures", "facts", "report"],
};

/** Files of a room itself that its folders may import, too: what each of them implements. */
const CONTRACTS: readonly string[] = ["store/store.ts", "store/database.ts", "store/open-error.ts"];

/** The library's entry, and the client's problem, which needs no package. */
const OWN_FORMS: readonly string[] = ["index.ts", "client/errors.ts"];

/** Most files of one folder of `core`. */
const MOST_FILES = 16;

/** `core` is pure: the packages that it may import, and what its code may not so much as mention. */
const PURE = {
  room: "core",
  packages: ["#crypto", "@noble/hashes/sha2.js"],
  forbidden:
    /\b(?:Date\.now|new Date(?!\([^)])|Math\.random|randomUUID|process\.|console\.|performance\.|setTimeout|fetch\()/,
};

interface Import {
  readonly specifier: string;
  /** Path under `src` for a file of ours; null for a package. */
  readonly file: string | null;
  readonly typesOnly: boolean;
}

type ModuleGraph = ReadonlyMap<string, readonly Import[]>;

function importsOf(path: string, source: string): Import[] {
  return importsIn(source).map(({ specifier, names, isType }) => {
    const file = specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier).replace(/\.js$/, ".ts") : null;
    const named = /^\{([^}]*)\}$/.exec(names)?.[1]?.split(",") ?? [];
    const allTypes = named.length > 0 && named.every((name) => /^\s*(?:type\s|$)/.test(name));
    return { specifier, file, typesOnly: isType || allTypes };
  });
}

function graphOf(sources: Readonly<Record<string, string>>): ModuleGraph {
  return new Map(Object.entries(sources).map(([path, source]) => [path, importsOf(path, source)]));
}

const roomOf = (path: string) => path.split("/")[0] ?? path;

/** The folder of a room that a file is in; null for a file of the room itself. */
function folderOf(path: string): string | null {
  const [, folder, file] = path.split("/");
  return file === undefined ? null : (folder ?? null);
}

/** Why a file may not import another of its room, or null. Files of the room itself, its entry points, may import every folder. */
function orderObjection(path: string, file: string): string | null {
  const folders = FOLDERS[roomOf(path)];
  const [from, to] = [folderOf(path), folderOf(file)];
  if (folders === undefined || from === null || CONTRACTS.includes(file)) return null;
  if (to === null) return `${from} may not import the room's own files`;
  return folders.indexOf(to) <= folders.indexOf(from) ? null : `${from} comes before ${to}`;
}

function objection(path: string, { file, specifier, typesOnly }: Import, graph: ModuleGraph): string | null {
  const room = roomOf(path);
  const rule = RULES[room];
  if (rule === undefined) return "belongs to no room that has a rule";
  if (file === null) return room === PURE.room && !PURE.packages.includes(specifier) ? `${room} is pure` : null;
  if (file.startsWith("../")) return room === PURE.room ? `${room} is pure` : null;
  if (!graph.has(file)) return "there is no such file";
  const other = roomOf(file);
  if (other === room) return orderObjection(path, file);
  if (rule.rooms.includes(other) || rule.files?.includes(file)) return null;
  if (rule.typesOf?.includes(other)) return typesOnly ? null : `${room} may import types of ${other} only`;
  return `${room} may not import ${other}`;
}

/** The shortest way to a module from one that nobody imports. */
function chainTo(target: string, graph: ModuleGraph): string[] {
  const importers = new Map<string, string[]>();
  for (const [path, imports] of graph) {
    for (const { file } of imports) if (file !== null) importers.set(file, [...(importers.get(file) ?? []), path]);
  }
  const seen = new Set([target]);
  const chains = [[target]];
  for (let chain = chains.shift(); chain !== undefined; chain = chains.shift()) {
    const above = importers.get(chain[0] ?? "") ?? [];
    if (above.length === 0) return chain;
    for (const importer of above) {
      if (seen.has(importer)) continue;
      seen.add(importer);
      chains.push([importer, ...chain]);
    }
  }
  return [target];
}

/** Every import that breaks a rule, with the chain that reaches it. */
function brokenRules(graph: ModuleGraph): string[] {
  return [...graph].flatMap(([path, imports]) =>
    imports.flatMap((found) => {
      const reason = objection(path, found, graph);
      return reason === null
        ? []
        : [`${[...chainTo(path, graph), found.file ?? found.specifier].join(" → ")}: ${reason}`];
    }),
  );
}

function circles(graph: ModuleGraph): string[] {
  const found = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, chain: readonly string[]) => {
    const at = chain.indexOf(path);
    if (at >= 0) found.add([...chain.slice(at), path].join(" → "));
    if (at >= 0 || done.has(path)) return;
    for (const { file } of graph.get(path) ?? []) if (file !== null) visit(file, [...chain, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return [...found];
}

function impurity(source: string): string | null {
  // Templates hold code too, so only plain quoted text is left out.
  return PURE.forbidden.exec(codeOf(source.replaceAll("`", " ")).code)?.[0] ?? null;
}

function sourcesUnder(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => path.replaceAll("\\", "/"));
  const modules = paths.filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts")).sort();
  const data = paths.filter((path) => path.endsWith(".json")).map((path) => [path, ""]);
  const code = modules.map((path) => [path, readFileSync(posix.join(folder, path), "utf8")]);
  return Object.fromEntries([...code, ...data]);
}

describe("imports", () => {
  const sources = sourcesUnder(fileURLToPath(new URL("../src", import.meta.url)));
  const graph = graphOf(sources);

  it("are found", () => {
    expect(graph.get("core/compose/compose.ts")?.map(({ file }) => file)).toContain("core/compose/draft.ts");
  });

  it("go in one direction, from room to room", () => {
    expect(brokenRules(graph)).toEqual([]);
  });

  it("go in one direction inside the rooms, too", () => {
    const found = Object.keys(FOLDERS).map((room) => {
      const inside = [...graph.keys()].filter((path) => roomOf(path) === room).map(folderOf);
      return [room, [...new Set(inside)].filter((folder) => folder !== null).sort()];
    });
    expect(Object.fromEntries(found)).toEqual(
      Object.fromEntries(Object.entries(FOLDERS).map(([room, folders]) => [room, [...folders].sort()])),
    );
  });

  it("stay within a folder's size in core", () => {
    const files = [...graph.keys()].filter((path) => roomOf(path) === "core");
    const sizes = FOLDERS["core"]?.map((folder) => [folder, files.filter((path) => folderOf(path) === folder).length]);
    expect(sizes?.filter(([, size]) => Number(size) > MOST_FILES)).toEqual([]);
  });

  it("bring no two exported types of one name, but where an entry gives one its own form", () => {
    const files = new Map<string, string[]>();
    for (const [path, source] of Object.entries(sources)) {
      if (OWN_FORMS.includes(path)) continue;
      const { code } = codeOf(source);
      for (const [, name = ""] of code.matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm))
        files.set(name, [...(files.get(name) ?? []), path]);
    }
    expect([...files].filter(([, paths]) => paths.length > 1)).toEqual([]);
  });

  it("make no circle", () => {
    expect(circles(graph)).toEqual([]);
  });

  it("leave core without clock, randomness, process and console", () => {
    const pure = Object.entries(sources).filter(([path]) => roomOf(path) === PURE.room);
    expect(pure.length).toBeGreaterThan(0);
    expect(pure.map(([path, source]) => [path, impurity(source)]).filter(([, found]) => found !== null)).toEqual([]);
  });
});
