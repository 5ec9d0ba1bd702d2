import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

/** How many of the slowest files are named. */
const SLOWEST = 10;

/** What a run ends with: which files took longest, and which tests were skipped. A title says why its test is skipped. */
export class SuiteReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length < SLOWEST) return;
    const names = new Map(modules.map((module) => [module, relative(process.cwd(), module.moduleId)]));
    const bySeconds = [...modules].sort((a, b) => secondsOf(b) - secondsOf(a)).slice(0, SLOWEST);
    console.log(`\nThe ${SLOWEST} slowest files, in seconds:`);
    for (const module of bySeconds) console.log(`  ${secondsOf(module).toFixed(1).padStart(6)}  ${names.get(module)}`);
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests("skipped")].map((test) => `  ${names.get(module)}: ${test.fullName}`),
    );
    console.log(`\n${skipped.length} tests skipped:`);
    for (const line of skipped) console.log(line);
  }
}

function secondsOf(module: TestModule): number {
  const { collectDuration, duration, setupDuration } = module.diagnostic();
  return (collectDuration + duration + setupDuration) / 1_000;
}
