/**
 * `npm run faults`: 1,000 calls through the proxy, of which most fail, in every way that engines and clients fail in, mixed by a seed: what
 * a service in a process of its own holds after each third of them. Ends with 1 where a call ended otherwise than it should have.
 * `COUNT=n`, `SEED=n`.
 */
import { endOnSignals } from "../test/ending-children.js";
import { runFaults } from "../test/http/problems/fault-run.js";

endOnSignals();
const count = Number(process.env["COUNT"] ?? 1_000);
const start = performance.now();
const run = await runFaults({ calls: count, seed: Number(process.env["SEED"] ?? 1), firstByteMs: 5_000 });
const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);

console.log("| after | heap, MiB | buffers, MiB | what keeps the service going | open to the engine | calls there |");
console.log("| --- | --: | --: | --- | --: | --: |");
for (const [third, { heapBytes, bufferBytes, resources }] of run.held.entries()) {
  const kept = Object.entries(resources).map(([kind, n]) => `${n} ${kind}`);
  const { connections, calls } = run.engine[third] ?? {};
  const cells = [`${third + 1}/3`, mib(heapBytes), mib(bufferBytes), kept.join(", "), connections, calls];
  console.log(`| ${cells.join(" | ")} |`);
}
console.log(`\n${count} calls in ${((performance.now() - start) / 1_000).toFixed(0)} s:`);
for (const [happening, calls] of Object.entries(run.counts).toSorted()) console.log(`- ${happening}: ${calls}`);
const off = run.expectations.map(({ expected, observed }) => Math.abs(expected - observed));
const differing = run.indexes.filter(
  ({ running, reloaded }) => JSON.stringify(running) !== JSON.stringify(reloaded),
).length;
console.log(`\nended otherwise than they should have: ${run.wrong.length}`);
for (const wrong of run.wrong.slice(0, 10)) console.log(`- ${wrong}`);
console.log(`never answered, but expected to hit: ${run.stillExpected.length}`);
console.log(`afterwards expected cached tokens were off by ${off.join(", ")}`);
console.log(`indexes that differ from what is stored: ${differing} of ${run.indexes.length}`);
console.log(
  `unhandled rejections: ${run.held.at(-1)?.unhandled.length}; written to the log: ${run.stderr.length} bytes`,
);
if (run.wrong.length + run.stillExpected.length + differing > 0) process.exitCode = 1;
