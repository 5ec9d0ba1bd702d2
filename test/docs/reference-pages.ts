import { defaultOf, SETTING_NAMES, SETTING_TITLES, SETTINGS, variableOf } from "../../src/cli/setting-list.js";
import { PRICES } from "../../src/core/cost/prices.js";
import { begin } from "../cli/memprefix-command.js";
import { readPages } from "./pages.js";

const SETTINGS_HEAD = `# Settings

Read this page to look up an environment variable. \`serve\` also takes four of them as flags (\`--host\`, \`--port\`, \`--data-dir\`, \`--upstream\`) and reads
\`.env\` in the working directory. Flags override the environment, which overrides \`.env\`. Every command warns about an unknown \`MEMPREFIX_\` variable. \`MEMPREFIX_URL\`
and \`MEMPREFIX_USER\` are for clients. The library reads none of them.

This page is generated from \`src/cli/setting-list.ts\`: \`npx vitest run test/docs/reference.test.ts -u\`.
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

Read this page to look up an option of \`npx memprefix\`. In a clone, \`node dist/cli/main.js\` is the same after \`npm run build\`. Every command also has
\`--help\`. The exit code is 2 for a wrong argument or setting and 1 for any other error. Commands that open the data directory read the
[settings](settings.md).

This page is generated from the commands' help: \`npx vitest run test/docs/reference.test.ts -u\`.
`;

/** `docs/cli.md`. */
export async function commandPage(): Promise<string> {
  const commands = await commandsBelow([]);
  return [CLI_HEAD, ...commands.map(sectionOf)].join("\n");
}

/** A command with more options is one for evaluations: its options are only named. */
const MOST_EXPLAINED = 8;

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

function sectionOf({ names, help }: DocumentedCommand): string {
  // Some commands also print the settings, which are a page of their own.
  const [own = ""] = help.split("\nSettings, by environment variable");
  const [, description = "", ...others] = own.trimEnd().split("\n\n");
  const options = optionsIn(own);
  const isLong = options.length > MOST_EXPLAINED;
  const list = isLong
    ? `Options, which \`--help\` explains: ${options.map(({ terms }) => `\`${terms}\``).join(", ")}.`
    : options.map(({ terms, meaning }) => `- \`${terms}\`: ${meaning}`).join("\n");
  const epilogue = others.filter((part) => !/^(?:Arguments|Options):\n/.test(part)).join(" ");
  const paragraphs = [`## memprefix ${names.join(" ")}`, sentence(description), list, epilogue];
  return `${paragraphs.filter((part) => part !== "").join("\n\n")}\n`;
}

interface DocumentedOption {
  readonly terms: string;
  readonly meaning: string;
}

/** Arguments and options of a command, other than `--help`. */
function optionsIn(help: string): readonly DocumentedOption[] {
  const [own = ""] = help.split("\nSettings, by environment variable");
  const rows = own.matchAll(/^ {2}(\S.*?) {2,}(.*(?:\n {4,}.*)*)/gm);
  return [...rows]
    .map(([, terms = "", meaning = ""]) => ({ terms, meaning: meaning.replaceAll(/\s+/g, " ") }))
    .filter(({ terms }) => terms !== "-h, --help");
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1).replaceAll(/\s+/g, " ")}.`;
