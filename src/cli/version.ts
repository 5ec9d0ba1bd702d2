import { readFileSync } from "node:fs";

/** Version of the package, from its own `package.json`; equally deep in `src` and `dist`. */
export const VERSION: string = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
