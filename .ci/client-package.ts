import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix, resolve } from "node:path";
import { z } from "zod";

/*
 * Makes the package `memstem-client` of what is built: the client, the core and the adapters, with what they import and nothing else, for
 * those who need no service and no database. Everything follows from package.json and from the built files' imports, so an adapter that
 * package.json exports is in it. `npm run build:client` writes it to `dist-client`; `npm pack` and `npm publish` take that folder.
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

/** Files that are reached, and the packages that they import, each with the chain of files that leads to it. */
const files = new Set<string>();
const packages = new Map<string, string>();
for (const { types, default: code } of entries) for (const path of [types, code]) reach(path, []);
for (const { types, default: code } of Object.values(manifest.imports).map(filesOf))
  for (const path of [types, code]) reach(path, []);

const imported = [...packages.keys()].filter((name) => !name.startsWith("#") && !name.startsWith("node:"));
const refused = imported.filter((name) => !(name in manifest.peerDependencies));
if (refused.length > 0) {
  throw new Error(refused.map((name) => `${packages.get(name)} → ${name}: is no framework of the user's`).join("\n"));
}
const peerDependencies = Object.fromEntries(
  Object.entries(manifest.peerDependencies).filter(([name]) => imported.includes(name)),
);

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
    name: "memstem-client",
    version: manifest.version,
    description: "memstem's client, core and framework adapters, without its service",
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
  const doors = entries.map(({ name }) => `- \`${posix.join("memstem-client", name)}\``).join("\n");
  return `# memstem-client

The part of memstem that needs no service on the machine: the client of a service, the core that
composes without I/O, and the adapters of frameworks. The package \`memstem\` has the same modules as \`memstem/client\`, \`memstem/core\` and
so on, with the service and the library beside them.

${doors}
`;
}

/** The types and the code that a condition's targets name. */
function filesOf(to: z.output<typeof target> | Readonly<Record<string, string>>): { types: string; default: string } {
  return z.looseObject({ types: z.string(), default: z.string() }).parse(to);
}

/** Adds a built file and all that it imports. */
function reach(path: string, behind: readonly string[]): void {
  const file = posix.normalize(path);
  if (files.has(file)) return;
  files.add(file);
  const chain = [...behind, file];
  for (const specifier of specifiersIn(readFileSync(join(ROOT, file), "utf8"))) {
    if (!specifier.startsWith(".")) {
      const name = packageOf(specifier);
      if (!packages.has(name)) packages.set(name, chain.join(" → "));
      continue;
    }
    const imported = posix.join(posix.dirname(file), specifier);
    const types = imported.replace(/\.js$/, ".d.ts");
    // The code of what has types only is empty, and is not imported by code.
    reach(file.endsWith(".d.ts") && existsSync(join(ROOT, types)) ? types : imported, chain);
  }
}

function specifiersIn(code: string): string[] {
  const plain = code.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const found = plain.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)(["'])([^"'\n]+)\1/g);
  return [...found].map(([, , specifier = ""]) => specifier);
}

function packageOf(specifier: string): string {
  if (specifier.startsWith("#") || specifier.startsWith("node:")) return specifier;
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}
