import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, vi } from "vitest";
import type { Scope } from "../../src/core/text/ids.js";
import { openEmbeddedMem0 } from "../../src/memory/embedded-mem0.js";
import type { MemorySource } from "../../src/memory/memory-source.js";
import { temporaryFolders } from "../temporary-folders.js";
import { scopeOf } from "./memory-source.suite.js";

/** The user of most tests. */
export const ada = scopeOf("ada");

/** A signal that does not abort. */
export const never: AbortSignal = new AbortController().signal;

/** A memory with names and quotes, which Mem0's entity extraction looks for. */
export const SECRET = 'Dr. Quetzalcoatl Zwingli told Ada about "Project Xylophone" in Ouagadougou';

/** Words of {@link SECRET} as Mem0 may keep them. */
export const SECRET_WORDS = [
  ...["Quetzalcoatl", "Zwingli", "zwingli", "Xylophone", "xylophone", "Ouagadougou", "ouagadougou"],
];

/** Where a test's data is; a fresh one for every test. */
export interface EmbeddedDirectory {
  /** A directory that holds nothing but the data directory. */
  readonly root: string;
  /** Does not exist before a source is opened. */
  readonly dataDir: string;
  /** Opens a source on the data directory, or on another; it is closed after the test. */
  open(options?: { readonly threshold?: number; readonly dataDir?: string }): MemorySource;
  files(): string[];
  /** Which words are to be read anywhere in the data directory: in rows, free pages, journals or names. */
  wordsOnDisk(words: readonly string[]): string[];
  rowsOf(database: string): unknown[];
}

/** Gives every test of the file a directory of its own, and takes it away afterwards. */
export function embeddedDirectory(): EmbeddedDirectory {
  // Sentence vectors take time on a busy machine.
  vi.setConfig({ testTimeout: 30_000 });
  const newFolder = temporaryFolders();
  let root = "";
  const opened: MemorySource[] = [];
  const dataDir = () => join(root, "data");

  beforeEach(() => {
    root = newFolder();
  });
  afterEach(async () => {
    for (const source of opened.splice(0)) await source.close();
  });

  return {
    get root() {
      return root;
    },
    get dataDir() {
      return dataDir();
    },
    open(options = {}) {
      const source = openEmbeddedMem0({ dataDir: dataDir(), ...options });
      opened.push(source);
      return source;
    },
    files: () => filesIn(root),
    wordsOnDisk(words) {
      const files = filesIn(dataDir());
      const bytes = Buffer.concat(files.map((name) => readFileSync(join(dataDir(), name))));
      return words.filter((word) => bytes.includes(word) || files.some((name) => name.includes(word)));
    },
    rowsOf(database) {
      const handle = new Database(join(dataDir(), "mem0", database), { readonly: true });
      expect(handle.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all()).toContain("vectors");
      const rows = handle.prepare("SELECT * FROM vectors").all();
      handle.close();
      return rows;
    },
  };
}

/** Searches a source, for {@link ada} unless told otherwise. */
export function search(source: MemorySource, query: string, scope: Scope = ada, topK = 10) {
  return source.search({ scope, query, topK }, never);
}

/** What there must be, or the test fails. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .toSorted();
}
