import { expect } from "vitest";
import { z } from "zod";
import type { Exchange, ServedApp } from "../server/served-app.js";

type Json = Record<string, unknown>;

const content = z.record(z.string(), z.object({ schema: z.record(z.string(), z.unknown()) }));
const security = z.array(z.partialRecord(z.enum(["bearer", "apiKey"]), z.array(z.never())));
const operation = z.looseObject({
  security: security.optional(),
  requestBody: z.object({ required: z.boolean(), content }).optional(),
  responses: z.record(z.string(), z.object({ description: z.string(), content: content.optional() })),
});
const document = z.looseObject({
  openapi: z.literal("3.1.0"),
  info: z.object({ title: z.string(), version: z.string(), description: z.string() }),
  security: security.refine((needed) => needed.length > 0),
  components: z.looseObject({
    schemas: z.record(z.string(), z.record(z.string(), z.unknown())),
    securitySchemes: z.object({
      bearer: z.looseObject({ type: z.literal("http"), scheme: z.literal("bearer") }),
      apiKey: z.looseObject({ type: z.literal("apiKey"), in: z.literal("header"), name: z.literal("x-api-key") }),
    }),
  }),
  paths: z.record(z.string(), z.record(z.string(), operation)),
});

/** The document that a service serves about itself. */
export class OpenApiDocument {
  readonly #document: z.output<typeof document>;

  constructor(json: unknown) {
    this.#document = document.parse(json);
  }

  static async of(app: ServedApp): Promise<OpenApiDocument> {
    return new OpenApiDocument(JSON.parse((await app.send("GET", "/openapi.json")).text));
  }

  /** Every operation, as `POST /compose`. */
  get operations(): string[] {
    return Object.entries(this.#document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
  }

  /** Whether an operation asks for no key. */
  isOpen(method: string, path: string): boolean {
    return (this.#document.paths[path]?.[method]?.security ?? this.#document.security).length === 0;
  }

  /** The statuses that are described by themselves. */
  statuses(method: string, path: string): string[] {
    return Object.keys(this.#document.paths[path]?.[method]?.responses ?? {});
  }

  /** Every `$ref` anywhere in it. */
  get references(): string[] {
    return [...new Set(referencesIn(this.#document))];
  }

  /** Whether a `$ref` points at something in the document. */
  resolves(reference: string): boolean {
    let at: unknown = this.#document;
    for (const name of reference.replace(/^#\//, "").split("/")) {
      at = typeof at === "object" && at !== null ? Reflect.get(at, name) : undefined;
    }
    return typeof at === "object" && at !== null;
  }

  component(name: string): Json {
    return this.#document.components.schemas[name] ?? {};
  }

  /** Whether a value is what a component says. */
  accepts(component: string, value: unknown): boolean {
    const schemas = withLocalReferences(this.#document.components.schemas, false);
    return validator({ $ref: `#/$defs/${component}`, $defs: schemas }).safeParse(value).success;
  }

  /** Checks an answer against what the document says of the operation: its media type, its shape, and that it names every field. */
  expectDocumented(method: "get" | "post" | "delete", path: string, { status, contentType, text }: Exchange): void {
    const responses = this.#document.paths[path]?.[method]?.responses ?? {};
    const response = responses[String(status)] ?? responses["default"];
    const schema = response?.content?.[contentType ?? ""]?.schema;
    if (schema === undefined) throw new Error(`${method} ${path}: ${status} ${contentType} is not documented`);
    const $defs = withLocalReferences(this.#document.components.schemas, true);
    const read = validator({ ...withLocalReferences(schema, true), $defs }).safeParse(JSON.parse(text));
    expect(read.error?.issues ?? [], `${method} ${path}: ${text}`).toEqual([]);
  }
}

function validator(schema: Json): z.ZodType {
  return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
}

/** The same schemas with references to `$defs`; `closed`: objects have no fields but those they name, where they say nothing else. */
function withLocalReferences(schemas: Json, closed: boolean): Json {
  const copy = (schema: unknown): unknown => {
    if (Array.isArray(schema)) return schema.map(copy);
    return typeof schema === "object" && schema !== null ? withLocalReferences(schema as Json, closed) : schema;
  };
  const copied = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, copy(schema)]));
  const reference = copied["$ref"];
  if (typeof reference === "string") copied["$ref"] = reference.replace("#/components/schemas/", "#/$defs/");
  if (closed && copied["type"] === "object" && typeof copied["properties"] === "object") {
    copied["additionalProperties"] ??= false;
  }
  return copied;
}

function referencesIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === "$ref" && typeof inner === "string" ? [inner] : referencesIn(inner),
  );
}
