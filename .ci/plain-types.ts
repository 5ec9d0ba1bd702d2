import { readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { camelName } from "../src/http/contracts/wire-names.js";

/*
 * Writes out the types that built declarations take from zod schemas, as `AnswerOf<typeof schema>`: with their descriptions, and so that who
 * uses them needs no package. The client's declarations are published without zod.
 */

/** How a schema becomes a type, by the helper that stands for it in the source. */
const FORMS = {
  AnswerOf: { io: "output", name: camelName, orNull: false },
  SentOf: { io: "input", name: camelName, orNull: false },
  OptionsOf: { io: "input", name: camelName, orNull: true },
  Given: { io: "input", name: (name: string) => name, orNull: false },
} as const;
type Form = (typeof FORMS)[keyof typeof FORMS];

const USE = /\b(AnswerOf|SentOf|OptionsOf|Given)<typeof (\w+)(?:\.(\w+))?>/g;
const IMPORT = /^import type (?:\* as (\w+)|\{([^}]*)\}) from "([^"]+)";\n/gm;

/** Rewrites a declaration file. `source`: the module that it was made of. */
export async function writePlainTypes(declarations: string, source: string): Promise<void> {
  const text = readFileSync(declarations, "utf8");
  const modules = new Map<string, Readonly<Record<string, unknown>>>();
  for (const [, all, names = "", from = ""] of text.matchAll(IMPORT)) {
    const path = resolve(dirname(source), from.replace(/\.js$/, ".ts"));
    for (const name of all === undefined ? names.split(",") : [all]) {
      if (new RegExp(`typeof ${name.trim()}\\b`).test(text)) modules.set(name.trim(), await import(path));
    }
  }
  const plain = text.replace(USE, (_use, form: keyof typeof FORMS, name: string, member: string | undefined) => {
    const schema = modules.get(name)?.[member ?? name];
    if (!(schema instanceof z.ZodType)) throw new Error(`${source}: ${name}.${member} is no schema`);
    return typeIn(schema, FORMS[form]);
  });
  const body = plain.replace(IMPORT, "");
  writeFileSync(
    declarations,
    plain.replace(IMPORT, (line, all: string | undefined, names: string = "") => {
      const used = all === undefined ? names.split(",").map((name) => `\\b${name.trim()}\\b`) : [`\\b${all}\\.\\w`];
      return used.some((name) => new RegExp(name).test(body)) ? line : "";
    }),
  );
}

interface Json extends Readonly<Record<string, unknown>> {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

function typeIn(schema: z.ZodType, form: Form): string {
  const json = z.toJSONSchema(schema, { io: form.io, unrepresentable: "any" });
  const definitions = (json["$defs"] ?? {}) as Readonly<Record<string, Json>>;
  const union = (types: readonly string[]) => [...new Set(types)].join(" | ");
  const typeOf = (value: Json, name: Form["name"]): string => {
    const { $ref, const: only, enum: some, anyOf, oneOf, type, items, additionalProperties: others } = value;
    if ($ref !== undefined) return typeOf(definitions[String($ref).replace("#/$defs/", "")] ?? {}, name);
    if (only !== undefined) return JSON.stringify(only);
    if (Array.isArray(some)) return union(some.map((one) => JSON.stringify(one)));
    const alternatives = (anyOf ?? oneOf) as readonly Json[] | undefined;
    if (alternatives !== undefined) return union(alternatives.map((one) => typeOf(one, name)));
    if (type === "array") return `readonly (${typeOf((items ?? {}) as Json, name)})[]`;
    if (Array.isArray(type)) return union(type.map((one) => typeOf({ ...value, type: one as unknown }, name)));
    if (type === "integer") return "number";
    if (type !== "object") return typeof type === "string" ? type : "unknown";
    const isOpen = typeof others === "object" && others !== null;
    const fields = Object.entries(value.properties ?? {});
    const written = fields.map(([key, field]) => {
      const isGiven = value.required?.includes(key) === true;
      const of = union([typeOf(field, name), ...(isGiven ? [] : [...(form.orNull ? ["null"] : []), "undefined"])]);
      const said = field["description"] === undefined ? "" : `/** ${field["description"]} */\n`;
      return `${said}readonly ${isOpen ? key : name(key)}${isGiven ? "" : "?"}: ${of};`;
    });
    const keys = fields.length === 0 || form.io === "output";
    const any = fields.length > 0 ? "unknown" : typeOf(others as Json, name);
    const lines = [...written, ...(isOpen && keys ? [`readonly [name: string]: ${any};`] : [])];
    return `{\n${lines.join("\n").replace(/^/gm, "    ")}\n}`;
  };
  return typeOf(json as Json, form.name);
}
