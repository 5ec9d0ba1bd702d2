import { agentEngine } from "../clients/agent-engine.js";
import { brokenPrefixes } from "../clients/checked-prompts.js";
import { runPageProgram } from "./page-program.js";

/** What is wrong with a page's program, run against the engine for agents with the packages of a folder; empty where it goes as it says. */
export async function tryPage(page: string, beside: string): Promise<readonly string[]> {
  const engine = await agentEngine();
  const environment = {
    OPENAI_BASE_URL: engine.url,
    OPENAI_API_KEY: "the engine's",
    OPENAI_AGENTS_DISABLE_TRACING: "1",
    MASTRA_TELEMETRY_DISABLED: "1",
    MEM0_TELEMETRY: "false",
  };
  try {
    const { code, stdout, stderr } = await runPageProgram(page, environment, beside);
    const printed = stdout.trim().split("\n");
    const wanted = ["Where should we eat tonight?", "And tomorrow?"].map((question) => `Noted: ${question}`);
    const last = JSON.stringify(engine.served.at(-1)?.asked.prompt ?? "");
    return [
      ...(code === 0 && wanted.every((line, at) => printed[at] === line)
        ? []
        : [`ended with ${code}: ${stdout}${stderr}`]),
      ...(last.split("Ana is vegetarian.").length === 2 ? [] : [`the memory is not in ${last}`]),
      ...brokenPrefixes(engine.served, []),
    ];
  } finally {
    await engine.close();
  }
}
