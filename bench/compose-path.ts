import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/*
 * What one compose runs through: the files and functions of the build that are called while a conversation's third turn is composed over
 * HTTP, by V8's coverage. `npm run bench:path -- [folder of a build]`, to compare two versions.
 */

const dist = resolve(process.argv[2] ?? "dist");
const load = (path: string) => import(pathToFileURL(join(dist, path)).href);
const { startService } = (await load("cli/serve.js")) as typeof import("../src/cli/serve.js");
const { readSettings } = (await load("cli/settings.js")) as typeof import("../src/cli/settings.js");

const dataDir = mkdtempSync(join(tmpdir(), "memstem-path-"));
const service = await startService(
  readSettings({ MEMSTEM_DATA_DIR: dataDir, MEMSTEM_PORT: "0", MEMSTEM_SOURCE: "none", MEMSTEM_LOG_LEVEL: "silent" }),
  process.stderr,
);

const said: { role: string; content: string }[] = [];
async function compose(turn: number): Promise<void> {
  said.push({ role: "user", content: `Question ${turn}?` });
  const memories = Array.from({ length: 20 }, (_, at) => ({
    id: `m${at + turn}`,
    memory: `Memory number ${at + turn}.`,
  }));
  const body = { user_id: "ana", conversation_id: "c", messages: said, memories };
  const answer = await fetch(`${service.address}/compose`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.json();
  said.push({ role: "assistant", content: `Answer ${turn}.` });
}

const session = new Session();
session.connect();
await compose(1);
await compose(2);
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
await session.post("Profiler.takePreciseCoverage");
await compose(3);
const { result } = await session.post("Profiler.takePreciseCoverage");
const base = pathToFileURL(`${dist}/`).href;
const listed = process.argv[3] === "--files";
const rooms = new Map<string, { files: number; functions: number }>();
for (const { url, functions } of result) {
  if (!url.startsWith(base)) continue;
  const called = functions.filter(({ ranges, functionName }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0);
  if (called.length === 0) continue;
  if (listed) console.log(`${url.slice(base.length)}: ${called.map(({ functionName }) => functionName).join(" ")}`);
  const room = url.slice(base.length).split("/")[0] ?? "";
  const sum = rooms.get(room) ?? { files: 0, functions: 0 };
  rooms.set(room, { files: sum.files + 1, functions: sum.functions + called.length });
}
let [files, functions] = [0, 0];
for (const [room, sum] of [...rooms].sort(([a], [b]) => (a < b ? -1 : 1))) {
  console.log(
    `${room.padEnd(10)} ${String(sum.files).padStart(4)} files ${String(sum.functions).padStart(5)} functions`,
  );
  files += sum.files;
  functions += sum.functions;
}
console.log(`${"all".padEnd(10)} ${String(files).padStart(4)} files ${String(functions).padStart(5)} functions`);
await service.stop();
rmSync(dataDir, { recursive: true, force: true });
process.exit(0);
