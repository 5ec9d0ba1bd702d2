/*
 * A service on PostgreSQL that commits a group by one insert of its records (`bare-commit.ts`), and is else the service: what any store of
 * these records costs behind the driver, at least, for `npm run bench -- load-pairs`. Arguments: those of `memprefix`.
 */
import { register } from "node:module";

const COMMIT = new URL("bare-commit.ts", import.meta.url).href;
const inItsPlace = `export const resolve = (specifier, context, next) =>
  next(specifier.endsWith("/group-commit.js") ? ${JSON.stringify(COMMIT)} : specifier, context);`;
register(`data:text/javascript,${encodeURIComponent(inItsPlace)}`);
await import(new URL("../dist/cli/main.js", import.meta.url).href);
