import { expect } from "vitest";
import { z } from "zod";
import type { Exchange, ServedApp } from "../server/served-app.js";

type Json = Record<string, unknown>;

const header = z.strictObject({ description: z.string(), schema: z.record(z.string(), z.unknown()) });
const content = z.record(
  z.string(),
  z.strictObject({ schema: z.record(z.string(), z.unknown()), example: z.unknown().optional() }),
);
const security = z.array(
  z.partialRecord(z.enum(["bearer", "apiKey", "webhookToken", "webhookBearer"]), z.array(z.never())),
);
const response = z.strictObject({
  description: z.string(),
  headers: z.record(z.string(), header).optional(),
  content: content.optional(),
});
const parameter = z.looseObject({ name: z.string(), in: z.enum(["path", "query", "header"]) });
const operation = z.looseObject({
  operationId: z.string(),
  parameters: z.array(parameter).optional(),
  security: security.optional(),
  requestBody: z.object({ required: z.boolean(), content }).optional(),
  responses: z.record(z.string(), response),
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

/** A request's JSON body of the document that has an example, with where it stands. */
export interface DocumentedExample {
  readonly operationId: string;
  readonly value: unknown;
  readonly schema: Json;
}

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

  accepts(component: string, value: unknown): boolean {
    const schemas = withLocalReferences(this.#document.components.schemas, false);
    return validator({ $ref: `#/$defs/${component}`, $defs: schemas }).safeParse(value).success;
  }

  /** Checks an answer against what the document says of the operation: its media type, its shape, and that it names every field. */
  expectDocumented(method: "get" | "post" | "delete", path: string, { status, contentType, text }: Exchange): void {
    const schema = this.#response(method, path, status)?.content?.[contentType ?? ""]?.schema;
    if (schema === undefined) throw new Error(`${method} ${path}: ${status} ${contentType} is not documented`);
    expect(this.#issues(schema, JSON.parse(text)), `${method} ${path}: ${text}`).toEqual([]);
  }

  issuesOf({ schema, value }: DocumentedExample): readonly unknown[] {
    return this.#issues(schema, value);
  }

  /** Every example of a request's body. */
  get examples(): DocumentedExample[] {
    return this.#operations.flatMap(({ operationId, requestBody }) =>
      Object.values(requestBody?.content ?? {})
        .filter(({ example }) => example !== undefined)
        .map(({ schema, example: value }) => ({ operationId, value, schema })),
    );
  }

  /** Every operation whose request has a JSON body. */
  get jsonBodies(): string[] {
    return this.#operations
      .filter(({ requestBody }) => requestBody?.content["application/json"] !== undefined)
      .map(({ operationId }) => operationId);
  }

  get #operations(): z.output<typeof operation>[] {
    return Object.values(this.#document.paths).flatMap((methods) => Object.values(methods));
  }

  #response(method: string, path: string, status: number): z.output<typeof response> | undefined {
    const responses = this.#document.paths[path]?.[method]?.responses ?? {};
    return responses[String(status)] ?? responses["default"];
  }

  #issues(schema: Json, value: unknown): readonly unknown[] {
    const { Message: message = {}, ...others } = this.#document.components.schemas;
    // Messages pass further fields through.
    const $defs = { ...withLocalReferences(others, true), Message: withLocalReferences(message, false) };
    return validator({ ...withLocalReferences(schema, true), $defs }).safeParse(value).error?.issues ?? [];
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
