import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix, resolve } from "node:path";
import { z } from "zod";
import { importsIn } from "./module-imports.js";

/*
 * Makes the package `memprefix-client` of what is built: the client, the core and the adapters, with what they import and nothing else, for
 * those who need no service and no database. Everything follows from package.json and from the built files' imports, so an adapter that
 * package.json exports is in it. `npx tsx .ci/client-package.ts` writes it to `dist-client`; `npm pack` and `npm publish` take that folder.
 */

const ROOT = resolve(import.meta.dirname, "..");
const OUT = resolve(process.argv[2] ?? join(ROOT, "dist-client"));

const target = z.union([z.string(), z.object({ types: z.string(), default: z.string() })]);
const versions = z.record(z.string(), z.string());
const manifest = z
  .looseObject({
    version: z.string(),
    keywords: z.array(z.string()),
    license: z.string(),
    engines: versions,
    exports: z.record(z.string(), target),
    imports: z.record(z.string(), z.record(z.string(), z.string())),
    dependencies: versions,
    peerDependencies: versions,
  })
  .parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));

/** Rooms that need nothing but what a runtime of the web has, or a framework that its user has. */
const ROOMS = /^\.\/dist\/(?:client|core|integrations)\//;

const entries = Object.entries(manifest.exports)
  .flatMap(([name, to]) =>
    typeof to === "object" && ROOMS.test(to.default) ? [{ name: name === "./client" ? "." : name, ...to }] : [],
  )
  .toSorted((a, b) => (a.name < b.name ? -1 : 1));

/** Packages of the project that need no more than these rooms do. */
const PORTABLE = ["@noble/hashes"];

/** What is to be copied. */
const files = new Set<string>();
const dependencies: Record<string, string> = {};
/** Packages that the user has, if they use what imports them. */
const peerDependencies: Record<string, string> = {};
const refused: string[] = [];
const aliases = Object.entries(manifest.imports).map(([name, to]) => ({ name, ...filesOf(to) }));
for (const entry of [...entries, ...aliases]) {
  const reached = reach([entry.types, entry.default]);
  for (const path of reached.files) files.add(path);
  for (const [name, chain] of reached.packages) {
    const version = manifest.dependencies[name];
    if (version !== undefined && PORTABLE.includes(name)) {
      dependencies[name] = version;
      continue;
    }
    const range = rangeOf(name, [...reached.packages.keys()]);
    if (range === null) refused.push(`${chain} → ${name}: is no framework of the user's, nor does one bring it`);
    else peerDependencies[name] = range;
  }
}
if (refused.length > 0) throw new Error(refused.join("\n"));

rmSync(OUT, { recursive: true, force: true });
for (const path of files) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  cpSync(join(ROOT, path), join(OUT, path));
}
cpSync(join(ROOT, "LICENSE"), join(OUT, "LICENSE"));
writeFileSync(join(OUT, "package.json"), `${JSON.stringify(clientManifest(), null, 2)}\n`);
writeFileSync(join(OUT, "README.md"), readme());

function clientManifest() {
  return {
    name: "memprefix-client",
    version: manifest.version,
    description: "memprefix's client, core and framework adapters, without its service",
    keywords: manifest.keywords,
    license: manifest.license,
    type: "module",
    engines: manifest.engines,
    sideEffects: false,
    exports: {
      ...Object.fromEntries(entries.map(({ name, types, default: code }) => [name, { types, default: code }])),
      "./package.json": "./package.json",
    },
    imports: manifest.imports,
    types: manifest.exports["./client"] && filesOf(manifest.exports["./client"]).types,
    files: ["dist"],
    dependencies,
    ...(Object.keys(peerDependencies).length === 0
      ? {}
      : {
          peerDependencies,
          peerDependenciesMeta: Object.fromEntries(
            Object.keys(peerDependencies).map((name) => [name, { optional: true }]),
          ),
        }),
  };
}

function readme(): string {
  const doors = entries.map(({ name }) => `- \`${posix.join("memprefix-client", name)}\``).join("\n");
  return `# memprefix-client

The part of memprefix that needs no service on the machine: the client of a service, the core that
composes without I/O, and the adapters of frameworks. The package \`memprefix\` has the same modules as \`memprefix/client\`, \`memprefix/core\` and
so on, with the service and the library beside them.

${doors}
`;
}

/** The types and the code that a condition's targets name. */
function filesOf(to: z.output<typeof target> | Readonly<Record<string, string>>): { types: string; default: string } {
  return z.looseObject({ types: z.string(), default: z.string() }).parse(to);
}

/** A framework has the range of the project's; what a framework of the same entry brings, such as LangChain zod, the project's version. */
function rangeOf(name: string, reached: readonly string[]): string | null {
  const framework = manifest.peerDependencies[name];
  if (framework !== undefined) return framework;
  const version = manifest.dependencies[name];
  const isBrought = reached.some((other) => other in manifest.peerDependencies && bringsOf(other).includes(name));
  return version === undefined || !isBrought ? null : `^${version}`;
}

function bringsOf(framework: string): readonly string[] {
  const path = join(ROOT, "node_modules", framework, "package.json");
  const { dependencies = {}, peerDependencies: peers = {} } = z
    .looseObject({ dependencies: versions.optional(), peerDependencies: versions.optional() })
    .parse(JSON.parse(readFileSync(path, "utf8")));
  return [...Object.keys(dependencies), ...Object.keys(peers)];
}

/** Built files with all that they import, and the packages that those import, each with the chain of files that leads to it. */
function reach(from: readonly string[]) {
  const reached = { files: new Set<string>(), packages: new Map<string, string>() };
  const add = (path: string, behind: readonly string[]): void => {
    const file = posix.normalize(path);
    if (reached.files.has(file)) return;
    reached.files.add(file);
    const chain = [...behind, file];
    for (const { specifier } of importsIn(readFileSync(join(ROOT, file), "utf8"))) {
      if (specifier.startsWith("#") || specifier.startsWith("node:")) continue;
      if (!specifier.startsWith(".")) {
        const name = packageOf(specifier);
        if (!reached.packages.has(name)) reached.packages.set(name, chain.join(" → "));
        continue;
      }
      const imported = posix.join(posix.dirname(file), specifier);
      const types = imported.replace(/\.js$/, ".d.ts");
      add(file.endsWith(".d.ts") && existsSync(join(ROOT, types)) ? types : imported, chain);
    }
  };
  for (const path of from) add(path, []);
  return reached;
}

function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}
