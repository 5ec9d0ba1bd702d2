/**
 * `npm run bench -- papers NAME`: one of the programs beside the papers' tables (docs/papers.md). Their headers say what they measure, their
 * settings and their floors. What follows the name is the program's own.
 */
const PROGRAMS: Readonly<Record<string, () => Promise<unknown>>> = {
  "authors-code": () => import("./authors-code.js"),
  breakdown: () => import("./breakdown.js"),
  overlap: () => import("./overlap.js"),
  permutation: () => import("./permutation.js"),
  pipelining: () => import("./pipelining.js"),
  sessions: () => import("./sessions.js"),
  "shared-corpus": () => import("./shared-corpus.js"),
  sweeps: () => import("./sweeps.js"),
  "warm-start": () => import("./warm-start.js"),
  "zero-overlap": () => import("./zero-overlap.js"),
};

const program = PROGRAMS[process.argv[2] ?? ""];
if (program === undefined) {
  process.stderr.write(`npm run bench -- papers takes one of ${Object.keys(PROGRAMS).join(", ")}\n`);
  process.exitCode = 2;
} else await program();
