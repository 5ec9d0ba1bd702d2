/**
 * `npm run bench:escape`: how much ordinary text is changed by escaping, by the list of tokens as it was and by shapes as it is. A text is a
 * memory or a turn of LoCoMo, a paragraph of documentation, or a piece of code between empty lines. LoCoMo takes `--data FOLDER`
 * (`recorded-data.ts`), and is left out without it; the rest is read from this repository, the packages that it installs, and `ordinary-text.ts`.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { canonicalText, escapeText, unescapeText } from "../src/core/index.js";
import { readLocomo } from "../src/eval/locomo/locomo-data.js";
import {
  HOW_TO_RECORD,
  locomoFile,
  RECORDED_CONVERSATIONS,
  readRecordedTrace,
} from "../test/eval/locomo/recorded-searches.js";
import { ORDINARY_TEXTS } from "./ordinary-text.js";
import { givenData } from "./recorded-data.js";

const root = fileURLToPath(new URL("../", import.meta.url));
const data = givenData();
const LONGEST = 2_000;

/** What stands between empty lines in the files of some folders, each piece once. */
function piecesOf(ending: RegExp, ...folders: readonly string[]): string[] {
  const pieces = folders
    .flatMap((folder) =>
      readdirSync(`${root}${folder}`, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
    )
    .filter((file) => ending.test(file))
    .sort()
    .flatMap((file) => readFileSync(`${root}${file}`, "utf8").split(/\n\s*\n/));
  return [...new Set(pieces)].filter((piece) => piece.trim() !== "" && piece.length <= LONGEST);
}

const texts: Record<string, readonly string[]> = {};
if (data === null) console.error(`LoCoMo is left out: ${HOW_TO_RECORD}`);
else {
  const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
  texts["LoCoMo, memories that Mem0 made"] = traces.flatMap(({ memories }) => memories.map(({ memory }) => memory));
  const file = locomoFile(data);
  const dialogues = file === null ? [] : readLocomo(JSON.parse(readFileSync(file, "utf8")));
  if (file !== null) texts["LoCoMo, what was said"] = dialogues.flatMap(({ turns }) => turns.map(({ text }) => text));
}
const packages = readdirSync(`${root}node_modules`).filter((name) => !name.startsWith("."));
const installed = packages.map((name) => `node_modules/${name}`);
texts["documentation (READMEs of the packages)"] = piecesOf(/^node_modules\/[^/]+\/README\.md$/i, ...installed);
texts["TypeScript (this repository)"] = piecesOf(/\.ts$/, "src", "bench");
texts["type declarations (Hono, zod)"] = piecesOf(/\.d\.ts$/, "node_modules/hono", "node_modules/zod");
texts["C++ (the packages)"] = piecesOf(/\.(?:cpp|cc|hpp)$/, ...installed);
texts["HTML (the packages)"] = piecesOf(/\.html$/, ...installed);
for (const [kind, written] of Object.entries(ORDINARY_TEXTS)) texts[kind] = written;

console.log("| text | texts | changed | characters added, per 1,000 |");
console.log("| --- | --: | --: | --: |");
const examples = new Map<string, number>();
for (const [kind, raw] of Object.entries(texts)) {
  const all = raw.map(canonicalText);
  let changed = 0;
  let added = 0;
  let characters = 0;
  for (const text of all) {
    const written = escapeText(text);
    if (unescapeText(written) !== text) throw new Error(`does not come back: ${text}`);
    const marks = written.length - text.replaceAll("\n", "\n  ").length;
    characters += text.length;
    added += marks;
    if (marks > 0) changed++;
    for (const [mark] of written.matchAll(/[<[\]>/]\\[^\s\\]{0,16}/g))
      if (!text.includes(mark)) examples.set(mark, (examples.get(mark) ?? 0) + 1);
  }
  const share = (count: number) => `${count} (${((100 * count) / all.length).toFixed(1)} %)`;
  console.log(`| ${kind} | ${all.length} | ${share(changed)} | ${((1_000 * added) / characters).toFixed(2)} |`);
}
const most = [...examples].sort(([, a], [, b]) => b - a).slice(0, Number(process.env["EXAMPLES"] ?? 0));
for (const [mark, count] of most) console.log(`${String(count).padStart(6)} ${JSON.stringify(mark)}`);
