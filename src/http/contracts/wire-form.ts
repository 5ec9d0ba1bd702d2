/*
 * contracts: the JSON of the HTTP surface, as zod schemas. Requests are strict, except in another system's data (Mem0's memories, OpenAI's
 * bodies).
 * Enters: parsed JSON. Leaves: the service's camelCase options, and the JSON of its answers.
 * A request's schema is the service's own (`service/fields`), turned to snake_case by rule; an answer's schema is here, and the same rule
 * makes its JSON. `openapi.json`, `examples.json` and `operations.ts` complete the OpenAPI document.
 */

import type { Context } from "hono";
import { z } from "zod";
import { type CamelName, camelName, type FromWire, type WireName, wireName } from "./wire-names.js";

export const label = z.int().describe("The block's label: `[12]` in the prompt.");

/** An answer in the library's names. */
export type AnswerOf<S extends z.ZodType> = FromWire<z.output<S>>;

/** A query in the library's names; `null` counts as absent. */
export type OptionsOf<S extends z.ZodObject> = {
  readonly [K in keyof z.input<S> as CamelName<K>]:
    | (unknown extends z.input<S>[K] ? z.output<S>[K & keyof z.output<S>] : z.input<S>[K])
    | (undefined extends z.input<S>[K] ? null : never);
};

type Rename = (value: unknown) => unknown;

/** How to rename each field of an object; null: leave its contents as they are. */
type Fields = ReadonlyMap<string, Rename | null>;

/**
 * Picks a schema's fields under other names, in the schema's order. Drops unknown fields; parts whose keys are not ours (records, loose
 * objects, unknown values) stay unmodified. Null: the schema has only such parts.
 *
 * @param sourceName the value's name for the field
 */
function renaming(schema: z.core.$ZodType, sourceName: (name: string) => string): Rename | null {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "array": {
      const element = renaming(def.element, sourceName);
      return element && ((value) => (Array.isArray(value) ? value.map(element) : value));
    }
    case "optional":
    case "nullable":
      return renaming(def.innerType, sourceName);
    case "object":
    case "union": {
      const fields = fieldsOf(schema, sourceName);
      if (fields === null) return null;
      const named = [...fields].map(([name, rename]) => ({ name, source: sourceName(name), rename }));
      return (value) => {
        if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
        const renamed: Record<string, unknown> = {};
        for (const { name, source, rename } of named) {
          const field = (value as Readonly<Record<string, unknown>>)[source];
          if (field !== undefined) renamed[name] = rename === null ? field : rename(field);
        }
        return renamed;
      };
    }
    default:
      return null;
  }
}

/** Of a union: the fields of all its objects. */
function fieldsOf(schema: z.core.$ZodType, sourceName: (name: string) => string): Fields | null {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "object") {
    const isClosed = def.catchall === undefined || def.catchall._zod.def.type === "never";
    return isClosed
      ? new Map(Object.entries(def.shape).map(([name, field]) => [name, renaming(field, sourceName)]))
      : null;
  }
  if (def.type !== "union") return null;
  const found = def.options.map((option) => fieldsOf(option, sourceName)).filter((fields) => fields !== null);
  return found.length === 0 ? null : new Map(found.flatMap((fields) => [...fields]));
}

/** Writes the service's answers as JSON of this schema. */
export function writerOf<S extends z.ZodType>(schema: S): (answer: FromWire<z.input<S>>) => z.input<S> {
  return (renaming(schema, camelName) ?? ((answer) => answer)) as (answer: FromWire<z.input<S>>) => z.input<S>;
}

/** Reads bodies that {@link snakeCased} of the same schema accepted into the service's options; absent fields stay absent. */
export function readerOf<S extends z.ZodObject, T = z.output<S>>(
  options: S,
  made = (read: z.output<S>) => read as T,
): (body: object) => T {
  const read = renaming(options, wireName) as (body: object) => z.output<S>;
  return (body) => made(read(body));
}

/** A request body's schema, and how to read what it accepted. */
export interface WireBody<T> {
  readonly schema: z.ZodType;
  read(body: object): T;
}

export function bodyOf<S extends z.ZodObject>(options: S, meta: z.GlobalMeta = {}): WireBody<z.output<S>> {
  return { schema: snakeCased(options).meta(meta), read: readerOf(options) };
}

/** A schema of options in HTTP's names. */
export function snakeCased<S extends z.ZodObject>(
  options: S,
): z.ZodObject<{ [K in keyof S["shape"] as WireName<K>]: S["shape"][K] }, z.core.$strict> {
  return inSnakeCase(options) as never;
}

function inSnakeCase(schema: z.ZodType): z.ZodType {
  const renamed = renamedParts(schema);
  const meta = schema.meta();
  return renamed === null || meta === undefined ? (renamed ?? schema) : renamed.meta(meta);
}

/** Null: no field is ours. */
function renamedParts(schema: z.ZodType): z.ZodType | null {
  if (schema instanceof z.ZodObject) {
    return z.strictObject(
      Object.fromEntries(
        Object.entries(schema.shape).map(([name, field]) => [wireName(name), inSnakeCase(field as z.ZodType)]),
      ),
    );
  }
  if (schema instanceof z.ZodOptional) return inSnakeCase(schema.unwrap() as z.ZodType).optional();
  if (schema instanceof z.ZodNullable) return inSnakeCase(schema.unwrap() as z.ZodType).nullable();
  return null;
}

/**
 * An answer's JSON.
 *
 * @param texts JSON of some fields, to be used as it is
 */
export function jsonOf(
  c: Context,
  value: unknown,
  status: 200 | 201 | 202 | 503 = 200,
  texts: Readonly<Record<string, string>> = {},
): Response {
  const json = Object.keys(texts).length === 0 ? JSON.stringify(value) : withTexts(Object(value) as object, texts);
  return c.body(json, status, { "content-type": "application/json" });
}

function withTexts(value: object, texts: Readonly<Record<string, string>>): string {
  let json = "";
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    json += `${json === "" ? "{" : ","}${JSON.stringify(name)}:${texts[name] ?? JSON.stringify(field)}`;
  }
  return json === "" ? "{}" : `${json}}`;
}
