#!/usr/bin/env node

/* The executable: passes this process's arguments, environment, streams and signals to the command line. */

import { Console } from "node:console";
import { Writable } from "node:stream";
import { run } from "./command-line.js";

// Libraries log to the console, Mem0 even to standard output, and may quote memories. Standard output is for answers only.
globalThis.console = new Console({ stdout: new Writable({ write: (_chunk, _encoding, done) => done() }) });

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // The reader closed the pipe, as `… | head` does. Node.js ignores SIGPIPE; shells use this exit code for it.
  if (error.code === "EPIPE") process.exit(128 + 13);
  process.stderr.write(`memprefix: standard output: ${error.message}\n`);
  process.exit(1);
});
const { argv, env, stdout, stderr } = process;
const exit = (code: number) => process.exit(code);
process.exitCode = await run(argv.slice(2), env, { stdout, stderr, signals: process, exit });
