import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { childOutput } from "../child-output.js";
import { ROOT, readPages, samplesOf } from "../docs/pages.js";
import { endingWithUs } from "../ending-children.js";

/** How a page's program ended. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A page's samples in TypeScript. The first is a whole program. */
export function pageSamples(page: string): readonly string[] {
  const text = readPages().find(({ path }) => path === page);
  const samples = text === undefined ? [] : samplesOf(text);
  return samples.filter(({ language }) => language === "ts").map((sample) => sample.text);
}

/**
 * Runs a whole program of a page as its reader would: in a folder of its own below the project, so that `memprefix/…` is the built package
 * (`npm run build`) and a framework the development dependency.
 *
 * @param page path from the project's root
 * @param environment what the program finds, such as `OPENAI_BASE_URL` of a stub engine
 * @param beside the folder below which the program's folder is made: one with packages that are no development dependencies, or the default
 * @param at which of the page's samples in TypeScript
 */
export async function runPageProgram(
  page: string,
  environment: Readonly<Record<string, string>>,
  beside = join(ROOT, ".tmp"),
): Promise<ProgramEnd> {
  const program = pageSamples(page)[0];
  if (program === undefined) throw new Error(`${page} has no program`);
  mkdirSync(beside, { recursive: true });
  const folder = mkdtempSync(join(beside, "program-"));
  try {
    writeFileSync(join(folder, "program.ts"), program);
    const child = endingWithUs(
      spawn(process.execPath, ["--import", import.meta.resolve("tsx"), "program.ts"], {
        cwd: folder,
        env: { PATH: process.env["PATH"] ?? "", HOME: folder, ...environment },
        stdio: ["ignore", "pipe", "pipe"],
      }),
    );
    const output = childOutput(child);
    const code = await new Promise<number | null>((ended) => child.once("close", ended));
    return { code, ...output };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
