import { SETTINGS } from "../../src/cli/setting-list.js";
import { begin } from "../cli/memstem-command.js";

type SettingName = keyof typeof SETTINGS;

/** The settings by what they are about, in the order of the page. */
const GROUPS: Readonly<Record<string, readonly SettingName[]>> = {
  "The service": [
    "host",
    "port",
    "dataDir",
    "databaseUrl",
    "logLevel",
    "shutdownMs",
    "corsOrigins",
    "webhookToken",
    "apiKey",
  ],
  "Where memories come from": [
    ...([
      "source",
      "mem0Url",
      "mem0ApiKey",
      "mem0Threshold",
      "mem0AppId",
      "mem0Filters",
      "mem0ShowExpired",
      "mem0Check",
      "searchTimeoutMs",
      "writeTimeoutMs",
    ] as const),
    "maxMemoryCharacters",
  ],
  "How prompts are composed": [
    "policy",
    "topK",
    "retention",
    "history",
    "toolMemories",
    "maxPromptTokens",
    "adaptiveDepth",
    "blockTemplate",
    "timeZone",
    "dedupe",
    "escape",
    "composeTimeoutMs",
  ],
  "The engine and its cache": [
    ...([
      "engineFamily",
      "engineModel",
      "blockSeparator",
      "cacheMarkTtl",
      "cacheTtlSeconds",
      "cacheTokens",
      "cacheSlots",
      "workers",
      "scheduleMs",
    ] as const),
  ],
  "The proxy": [
    ...(["upstreamUrl", "upstreamApi", "upstreamApiKey", "upstreamTimeoutMs", "upstreamIdleMs"] as const),
    ...(["userHeader", "conversationHeader", "identity", "router", "cacheDiagnostics"] as const),
    ...(["writeBack", "warmUp"] as const),
  ],
  "The engine inside": ["engine", "model", "engineSlots", "contextTokens"],
  Limits: [
    ...(["maxBodyBytes", "maxBatchBytes", "bodyTimeoutMs", "bodyBytesPerSecond", "answerTimeoutMs"] as const),
    ...(["ratePerSecond", "rateBurst", "maxConcurrent", "maxWaitingPerUser", "maxPending", "maxLagMs"] as const),
  ],
  "What is kept": ["keepDays", "maxWorkingMegabytes", "maxIndexNodes", "usagePrompts"],
  "The dashboard and alerts": ["dashboardText", "alerts"],
};

const SETTINGS_HEAD = `# Settings

Environment variables, for \`memstem serve\` and for every command that opens the data directory. \`npx memstem serve --help\` lists the same.
The library reads none of them: its options are arguments of \`createMemstem\`.

This page is made from the list in \`src/cli/setting-list.ts\`; \`npx vitest run test/docs/reference.test.ts -u\` makes it again.
`;

/** `docs/settings.md`. A setting that no group has stands under "Other". */
export function settingsPage(): string {
  const names = Object.keys(SETTINGS) as SettingName[];
  const grouped = new Set(Object.values(GROUPS).flat());
  const other = names.filter((name) => !grouped.has(name));
  const groups = [...Object.entries(GROUPS), ...(other.length === 0 ? [] : [["Other", other] as const])];
  const tables = groups.map(([title, members]) => {
    return `## ${title}\n\n| variable | meaning | default |\n| --- | --- | --- |\n${members.map(settingRow).join("\n")}\n`;
  });
  return [SETTINGS_HEAD, ...tables].join("\n");
}

function settingRow(name: SettingName): string {
  const { variable, help, schema, standard = schema.safeParse(undefined).data } = SETTINGS[name];
  const [meaning = "", stated] = help.split("; default: ");
  const value = standard === undefined ? (stated ?? "none") : `\`${String(standard)}\``;
  return `| \`${variable}\` | ${cell(meaning)} | ${cell(value)} |`;
}

const cell = (text: string) => text.replaceAll("|", "\\|");

const CLI_HEAD = `# Command line

Every command as \`npx memstem\` knows it; in a clone, \`node dist/cli/main.js\` is the same after \`npm run build\`. Commands that open the
data directory read the [settings](settings.md) from the environment. A wrong call ends with 1 and one line on standard error.

This page is made from the commands' own help; \`npx vitest run test/docs/reference.test.ts -u\` makes it again.
`;

/** `docs/cli.md`. */
export async function commandPage(): Promise<string> {
  const commands = await commandsBelow([]);
  const sections = commands.map(({ names, help }) => {
    // The list of settings that some commands print is a page of its own.
    const [own = ""] = help.split("\nSettings, by environment variable");
    return `## memstem ${names.join(" ")}\n\n\`\`\`\n${own.trimEnd()}\n\`\`\`\n`;
  });
  return [CLI_HEAD, ...sections].join("\n");
}

interface DocumentedCommand {
  /** As it is called, without `memstem`. */
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
