import { defaultOf, SETTING_NAMES, SETTING_TITLES, SETTINGS, variableOf } from "../../src/cli/setting-list.js";
import { PRICES } from "../../src/core/cost/prices.js";
import { begin } from "../cli/memprefix-command.js";
import { readPages } from "./pages.js";

const SETTINGS_HEAD = `# Settings

Environment variables, for \`memprefix serve\` and for the commands whose \`--help\` lists them. \`serve\` also takes four of them as flags (\`--host\`,
\`--port\`, \`--data-dir\`, \`--upstream\`) and reads the file \`.env\` in the working directory. A flag comes before the environment, the environment before
\`.env\`. Every command warns about a \`MEMPREFIX_\` variable that is no setting, and names the nearest one. \`MEMPREFIX_URL\` and \`MEMPREFIX_USER\` are
for clients. The library reads none of them: its options are arguments of \`createMemprefix\`.

This page is made from the list in \`src/cli/setting-list.ts\`; \`npx vitest run test/docs/reference.test.ts -u\` makes it again.
`;

/** `docs/settings.md`. */
export function settingsPage(): string {
  const rows = SETTING_NAMES.map((name) => {
    const title = SETTING_TITLES[name];
    const head = title === undefined ? "" : `\n## ${title}\n\n| variable | meaning | default |\n| --- | --- | --- |\n`;
    const [meaning = "", stated = "none"] = SETTINGS[name].description?.split("; default: ") ?? [];
    const standard = defaultOf(name);
    const value = standard === undefined ? stated : `\`${standard}\``;
    return `${head}| \`${variableOf(name)}\` | ${cell(meaning)} | ${cell(value)} |\n`;
  });
  return SETTINGS_HEAD + rows.join("");
}

const cell = (text: string) => text.replaceAll("|", "\\|");

/** The list of prices as `docs/retention.md` has it; a question mark: not known. */
export function pricesTable(): string {
  const known = (value: number | null) => (value === null ? "?" : value.toLocaleString("en"));
  const rows = PRICES.map((row) =>
    [
      ...[row.provider, row.models],
      ...[row.cached, row.written].map(known),
      row.writtenForHour ?? "–",
      ...[row.minimumTokens, row.blockTokens].map(known),
      row.lifetimeSeconds === null ? "?" : `${row.lifetimeSeconds / 60} min`,
    ].join(" | "),
  );
  const titles = [
    ...["provider", "models", "cached", "written", "for an hour", "shortest prefix", "blocks of", "cached for"],
  ];
  return [titles.join(" | "), `--- | ---${" | --:".repeat(6)}`, ...rows].map((row) => `| ${row} |`).join("\n");
}

const LLMS_HEAD = `# memprefix

> Middleware between an agent's memory (Mem0) and an LLM inference engine: composes prompts whose prefix the engine has cached, from the same memories.

A service with an OpenAI- and Anthropic-compatible proxy, a TypeScript library, a command line. In a clone, \`npm ci && npm start\` serves it at http://127.0.0.1:4600 without keys; \`POST /compose\` composes one prompt; \`npx memprefix doctor\` says what is wrong.
`;

/** `docs/llms.txt` (https://llmstxt.org): the index of all pages, for models. */
export function llmsText(): string {
  const index = readPages().find(({ path }) => path === "docs/README.md")?.text ?? "";
  return `${LLMS_HEAD}\n${index.slice(index.indexOf("## "))}`;
}

const CLI_HEAD = `# Command line

Every command as \`npx memprefix\` knows it; in a clone, \`node dist/cli/main.js\` is the same after \`npm run build\`. Commands that open the
data directory read the [settings](settings.md) from the environment. A wrong call or setting ends with 2, any other error with 1, and one line on standard error.

This page is made from the commands' own help; \`npx vitest run test/docs/reference.test.ts -u\` makes it again.
`;

/** `docs/cli.md`. */
export async function commandPage(): Promise<string> {
  const commands = await commandsBelow([]);
  const sections = commands.map(({ names, help }) => {
    // The list of settings that some commands print is a page of its own.
    const [own = ""] = help.split("\nSettings, by environment variable");
    return `## memprefix ${names.join(" ")}\n\n\`\`\`\n${own.trimEnd()}\n\`\`\`\n`;
  });
  return [CLI_HEAD, ...sections].join("\n");
}

interface DocumentedCommand {
  /** As it is called, without `memprefix`. */
  readonly names: readonly string[];
  readonly help: string;
}

/** The commands that run something, in the order in which they are listed. */
async function commandsBelow(names: readonly string[]): Promise<readonly DocumentedCommand[]> {
  const { stdout: help } = await begin([...names, "--help"], {}).ended;
  const [, listed = ""] = help.split("\nCommands:\n");
  const below = [...listed.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name]) => name ?? "");
  if (below.length === 0) return [{ names, help }];
  const others = below.filter((name) => name !== "help").map((name) => commandsBelow([...names, name]));
  return (await Promise.all(others)).flat();
}
