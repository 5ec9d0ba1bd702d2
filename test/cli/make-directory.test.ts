import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeDirectory } from "../../src/cli/data-directory.js";

const hasProc = existsSync("/proc/self/status");

describe("a directory", () => {
  const root = mkdtempSync(join(tmpdir(), "memprefix-directories-"));
  afterAll(() => rmSync(root, { recursive: true }));

  it("is made with all that is missing above it, also by a relative name, and again without harm", () => {
    const path = join(root, "a", "b", "c");
    for (const name of [path, path, `${path}/`, relative(process.cwd(), join(root, "d", "e"))]) makeDirectory(name);
    for (const made of [path, join(root, "d", "e")]) expect(statSync(made).isDirectory()).toBe(true);
  });

  it("may be reached through a link", () => {
    mkdirSync(join(root, "real"));
    symlinkSync(join(root, "real"), join(root, "link"));
    makeDirectory(join(root, "link"));
    makeDirectory(join(root, "link", "below"));
    expect(statSync(join(root, "real", "below")).isDirectory()).toBe(true);
  });

  it("is refused where a file, or a link to nothing, is in its way, and nothing is made", () => {
    writeFileSync(join(root, "file"), "");
    symlinkSync(join(root, "nothing"), join(root, "dangling"));
    expect(() => makeDirectory(join(root, "file"))).toThrow("EEXIST");
    expect(() => makeDirectory(join(root, "file", "a", "b"))).toThrow("ENOTDIR");
    expect(() => makeDirectory(join(root, "dangling"))).toThrow("EEXIST");
    expect(existsSync(join(root, "nothing"))).toBe(false);
  });

  it.skipIf(!hasProc)(
    `is refused where the file system takes none${hasProc ? "" : " (skipped: there is no /proc)"}`,
    () => {
      expect(() => makeDirectory("/proc/memprefix/data")).toThrow(
        "ENOENT: no such file or directory, mkdir '/proc/memprefix'",
      );
      makeDirectory("/proc");
    },
  );
});
