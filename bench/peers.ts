/**
 * `npm run bench:peers`: memory tokens that hit an endless prefix cache over real Mem0 searches of LoCoMo questions, by order of the
 * blocks: as retrieved, as ContextPilot 0.4.1's own code ordered them (recorded), and prefix-exact. Needs `../shared/data`.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { memoryHits, RECORDED_CONVERSATIONS, readRecording } from "../test/eval/recorded-searches.js";

const shared = fileURLToPath(new URL("../../shared/data/", import.meta.url));
if (!existsSync(shared)) {
  console.error("needs the recorded searches, which are not here");
  process.exit(1);
}
console.log("| conversation |   k | retrieval | ContextPilot | prefix-exact | prefix-exact / ContextPilot |");
console.log("| ------------ | --: | --------: | -----------: | -----------: | --------------------------: |");
for (const conversation of RECORDED_CONVERSATIONS) {
  for (const k of [20, 100] as const) {
    const { retrieval, contextPilot, prefixExact } = memoryHits(readRecording(shared, conversation), k);
    const share = (hit: number) => hit.toFixed(3);
    console.log(
      `| ${conversation.padEnd(12)} | ${String(k).padStart(3)} | ${share(retrieval).padStart(9)} | ` +
        `${share(contextPilot).padStart(12)} | ${share(prefixExact).padStart(12)} | ${(prefixExact / contextPilot).toFixed(2).padStart(27)} |`,
    );
  }
}
