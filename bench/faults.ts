/**
 * `npm run faults`: 1,000 calls by each way through the proxy (chats, responses and messages, passed on and converted), of which most fail,
 * in every way that engines and clients fail in, mixed by a seed: what a service in a process of its own holds after each third of them.
 * Ends with 1 where a call ended otherwise than it should have, or indexes differ from what is stored. `-- WAY …`: those alone. `COUNT=n`,
 * `SEED=n`.
 */
import { endOnSignals } from "../test/ending-children.js";
import { type FaultRun, runFaults } from "../test/http/problems/fault-run.js";
import { FAULT_DOORS, type FaultDoorName } from "../test/http/problems/fault-wires.js";

const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);

/** Prints what a run came to; gives the number of mistakes. */
function print(run: FaultRun): number {
  console.log("| after | heap, MiB | buffers, MiB | what keeps the service going | open to the engine | calls there |");
  console.log("| --- | --: | --: | --- | --: | --: |");
  for (const [third, { heapBytes, bufferBytes, resources }] of run.held.entries()) {
    const kept = Object.entries(resources).map(([kind, n]) => `${n} ${kind}`);
    const { connections, calls } = run.engine[third] ?? {};
    const cells = [`${third + 1}/3`, mib(heapBytes), mib(bufferBytes), kept.join(", "), connections, calls];
    console.log(`| ${cells.join(" | ")} |`);
  }
  const counts = Object.entries(run.counts).toSorted();
  console.log(`\n${counts.map(([happening, calls]) => `${happening}: ${calls}`).join("; ")}`);
  const off = run.expectations.map(({ expected, observed }) => Math.abs(expected - observed));
  const differing = run.indexes.filter(
    ({ running, reloaded }) => JSON.stringify(running) !== JSON.stringify(reloaded),
  ).length;
  console.log(`ended otherwise than they should have: ${run.wrong.length}`);
  for (const wrong of run.wrong.slice(0, 10)) console.log(`- ${wrong}`);
  console.log(`never answered, but expected to hit: ${run.stillExpected.length}`);
  console.log(`afterwards expected cached tokens were off by ${off.join(", ")}`);
  console.log(`indexes that differ from what is stored: ${differing} of ${run.indexes.length}`);
  console.log(
    `unhandled rejections: ${run.held.at(-1)?.unhandled.length}; written to the log: ${run.stderr.length} bytes`,
  );
  return run.wrong.length + run.stillExpected.length + differing;
}

endOnSignals();
const calls = Number(process.env["COUNT"] ?? 1_000);
const seed = Number(process.env["SEED"] ?? 1);
const wanted = process.argv.slice(2);
const all = Object.keys(FAULT_DOORS) as FaultDoorName[];
for (const door of all.filter((name) => wanted.length === 0 || wanted.includes(name))) {
  const start = performance.now();
  const run = await runFaults({ door, calls, seed, firstByteMs: 5_000 });
  console.log(`\n${door}: ${calls} calls in ${((performance.now() - start) / 1_000).toFixed(0)} s\n`);
  if (print(run) > 0) process.exitCode = 1;
}
