import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { z } from "zod";
import { editedJson, valueText } from "../../apis/api/edited-json.js";
import { type JsonObject, record } from "../../core/text/json.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import { fieldIssues } from "../../service/fields/fields.js";
import { type Described, type OperationId, operation } from "../contracts/operations.js";
import { jsonOf, type WireBody, writerOf } from "../contracts/wire-form.js";
import { type FromWire, fromWire } from "../contracts/wire-names.js";
import { readJson } from "../guards/body.js";
import type { HttpEnvironment } from "../requests/request.js";

/*
 * Routes that answer in JSON: a contract checks the request, which is read in camelCase; another writes the answer. Errors are the app's.
 */

type App = OpenAPIHono<HttpEnvironment>;
type Ctx = Context<HttpEnvironment>;
type Answering<Given, R extends z.ZodType> = (given: Given, c: Ctx) => Promise<FromWire<z.input<R>>>;
/** A query in camelCase. */
type QueryOf<Q extends z.ZodObject> = FromWire<z.output<Q>>;

export function addGet<Q extends z.ZodObject, R extends z.ZodType>(
  app: App,
  id: OperationId,
  path: string,
  query: Q,
  result: R,
  answer: Answering<QueryOf<Q>, R>,
): void {
  const written = writerOf(result);
  addRoute(app, id, { method: "get", path, query, answer: result }, async (c) => {
    const given = await validated(query, c.req.query());
    return jsonOf(c, written(await answer(fromWire(given) as QueryOf<Q>, c)), 200);
  });
}

/**
 * @param kept fields of the answer that are made of the body's of the same name and keep its bytes where they are equal
 * @param isAccepted whether what was requested is done later: 202
 */
export function addPost<T, R extends z.ZodType>(
  app: App,
  id: OperationId,
  path: string,
  body: WireBody<T>,
  result: R,
  answered: Answering<T, R>,
  status: 200 | 201 = 200,
  kept: readonly string[] = [],
  isAccepted?: (answer: FromWire<z.input<R>>) => boolean,
): void {
  const written = writerOf(result);
  const isLater = isAccepted !== undefined;
  addRoute(app, id, { method: "post", path, body: body.schema, answer: result, status, isLater }, async (c) => {
    const given = readJson(c);
    if (given instanceof Response) return given;
    const asked = body.read((await validated(body.schema, given.value)) as object);
    const answer = await answered(asked, c);
    const json = written(answer);
    return jsonOf(
      c,
      json,
      isAccepted?.(answer) ? 202 : status,
      textsOf(kept, given.json, record(given.value), record(json)),
    );
  });
}

/** JSON of fields of an answer that are made of a body's. */
function textsOf(
  kept: readonly string[],
  json: string,
  body: JsonObject,
  answered: JsonObject,
): Record<string, string> {
  const texts = kept.flatMap((name) => {
    const own = valueText(json, name);
    const field = answered[name];
    return own === null || field === undefined ? [] : [[name, editedJson(own, body[name], field)] as const];
  });
  return Object.fromEntries(texts);
}

/**
 * Adds a route twice: with its ids in the path, and in the query. An id `.` or `..` cannot be in a path, however it is escaped (WHATWG URL,
 * "dot segments"), and some proxies reject `%2F`.
 *
 * @param paths `[with ids, without]`
 */
export function addOfIds<I extends z.ZodObject, Q extends z.ZodObject, R extends z.ZodType>(
  app: App,
  id: OperationId,
  method: "get" | "delete",
  paths: readonly [string, string],
  ids: I,
  query: Q | null,
  result: R,
  answer: Answering<QueryOf<I> & QueryOf<Q>, R>,
): void {
  const written = writerOf(result);
  const [byPath, byQuery] = paths;
  const answered = async (c: Ctx, given: object) =>
    jsonOf(c, written(await answer(fromWire(given) as QueryOf<I> & QueryOf<Q>, c)), 200);
  addRoute(app, id, { method, path: byPath, params: ids, query: query ?? undefined, answer: result }, async (c) => {
    const asked = query === null ? {} : await validated(query, c.req.query());
    return answered(c, { ...(await validated(ids, c.req.param())), ...asked });
  });
  const all = query === null ? ids : query.extend(ids.shape);
  addRoute(app, id, { method, path: byQuery, query: all, answer: result, isByQuery: true }, async (c) =>
    answered(c, await validated(all, c.req.query())),
  );
}

export function addRoute(
  app: App,
  id: OperationId,
  described: Described,
  handler: (c: Ctx) => Promise<Response>,
): void {
  app.openAPIRegistry.registerPath(operation(id, described));
  app.on(described.method.toUpperCase(), routePath(described.path), handler);
}

/** Hono's form of a path. */
function routePath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

/**
 * Parses a value. Throws {@link InvalidRequestError}. Zod compiles a schema's synchronous parser, which takes a third of the asynchronous
 * one's time, but names other fields in some errors.
 */
export async function validated<S extends z.ZodType>(schema: S, value: unknown): Promise<z.output<S>> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { data, error } = await schema.safeParseAsync(value);
  if (error !== undefined) throw new InvalidRequestError(fieldIssues(error));
  return data as z.output<S>;
}
