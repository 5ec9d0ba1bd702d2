import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const FOLDER = resolve(import.meta.dirname, "../.tmp/on-demand");

/**
 * The folder of a package that few runs need: the first that does installs it, below a folder that is kept between runs. Rejects if it cannot
 * be installed.
 *
 * @param scripts packages whose install scripts run
 */
export async function onDemand(name: string, version: string, scripts: readonly string[] = []): Promise<string> {
  const installed = join(FOLDER, `${name}-${version}`);
  if (!existsSync(installed)) {
    await mkdir(FOLDER, { recursive: true });
    const made = await mkdtemp(`${installed}-`);
    // A PostgreSQL server that root starts runs as another user.
    await chmod(made, 0o755);
    const allowScripts = Object.fromEntries(scripts.map((each) => [each, true]));
    await writeFile(
      join(made, "package.json"),
      JSON.stringify({ private: true, dependencies: { [name]: version }, allowScripts }),
    );
    await promisify(execFile)("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: made });
    // Another process may have been faster.
    await rename(made, installed).catch(() => rm(made, { recursive: true }));
  }
  return join(installed, "node_modules", name);
}
