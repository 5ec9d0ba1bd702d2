import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutFilePaths } from "../../../src/core/text/file-paths.js";

const name = fc.stringMatching(/^[A-Za-z0-9_@][A-Za-z0-9_@.-]{2,11}$/);
const names = fc.array(name, { minLength: 1, maxLength: 6 });
/** A path, as systems write them. */
const path = fc
  .tuple(names, fc.constantFrom("posix", "url", "windows", "share", "here", "above", "home"))
  .map(([parts, kind]) => {
    const rest = parts.join("/");
    const forms = {
      posix: `/${rest}`,
      url: `file:///${rest}`,
      windows: `C:\\${parts.join("\\")}`,
      share: `\\\\${parts.join("\\")}`,
      here: `./${rest}`,
      above: `../${rest}`,
      home: `~/${rest}`,
    };
    return { parts, text: forms[kind] };
  });
/** What Node.js and SQLite say with one in it. */
const says = fc.constantFrom<(path: string) => string>(
  (file) => `Cannot find package 'mem0ai' imported from ${file}`,
  (file) => `Cannot find module '${file}'\nRequire stack:\n- ${file}`,
  (file) => `ENOENT: no such file or directory, open '${file}'`,
  (file) => `EACCES: permission denied, rename '${file}' -> '${file}'`,
  (file) => `unable to open database file: ${file}`,
  (file) => `dlopen(${file}, 0x0001): tried: "${file}" (no such file)`,
  (file) => `connect ENOENT ${file}`,
  (file) => `${file}: file too short`,
  (file) => `    at load (${file}:10:20)`,
  (file) => `read \`${file}\`; ${file}, ${file}`,
);

describe("a text without file paths", () => {
  it("shows no part of one, whatever an error says with it", () => {
    fc.assert(
      fc.property(says, path, (say, { parts, text }) => {
        const words = new Set(withoutFilePaths(say(text)).split(/[^A-Za-z0-9_@.-]+/));
        const own = new Set(say("").split(/[^A-Za-z0-9_@.-]+/));
        expect(parts.filter((part) => words.has(part) && !own.has(part))).toEqual([]);
      }),
    );
  });

  it.each([
    ["open '/srv/my data/vectors.db'", "open 'a file'"],
    ["imported from /srv/my data/dist/main.js", "imported from a file"],
    ["in node_modules/openai/index.js", "in a file"],
  ])("shows none with spaces in it either: %s", (text, shown) => {
    expect(withoutFilePaths(text)).toBe(shown);
  });

  it.each([
    "connect ECONNREFUSED 127.0.0.1:8000",
    "the upstream engine at http://127.0.0.1:8000/v1 could not be reached: ECONNRESET",
    "https://api.mem0.ai/v3/memories/search/ and http://[::1]:80/v1",
    "and/or, 1/2, a / b",
    "Unexpected token '<', \"<html>\" is not valid JSON",
    "ERR_MODULE_NOT_FOUND: Cannot find package 'mem0ai'",
    "it is closed",
    "",
  ])("stays what it was where it has none: %s", (text) => {
    expect(withoutFilePaths(text)).toBe(text);
  });
});
