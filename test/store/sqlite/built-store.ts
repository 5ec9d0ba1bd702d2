import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** A built module of the store: threads, and processes of tests, run what was built. */
export function builtModule(name: string): string {
  return pathToFileURL(resolve(import.meta.dirname, "../../../dist/store", `${name}.js`)).href;
}

/** A Node.js process that runs a test's script. */
export interface Script {
  readonly child: ChildProcess;
  line(): Promise<string>;
  /** Its exit code, signal, and all that it wrote to standard error. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly stderr: string }>;
}

/** Starts a script, an ES module that gets its parameters as `process.argv[1]` and so on. */
export function startScript(code: string, ...parameters: readonly string[]): Script {
  const child = spawn(process.execPath, ["--input-type=module", "-e", code, "--", ...parameters]);
  const lines: string[] = [];
  let rest = "";
  let stderr = "";
  const waiting: ((line: string) => void)[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const pieces = (rest + text).split("\n");
    rest = pieces.pop() ?? "";
    for (const piece of pieces) (waiting.shift() ?? ((line) => lines.push(line)))(piece);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, stderr }));
  const line = async () => {
    const next = lines.shift();
    if (next !== undefined) return next;
    const first = new Promise<string>((take) => waiting.push(take));
    const end = ended.then(({ code, stderr }) => Promise.reject(new Error(`it ended with ${code}: ${stderr}`)));
    return Promise.race([first, end]);
  };
  return { child, line, ended };
}
