import { runMem0Provider } from "./mem0-provider-program.js";

runMem0Provider("Messages", "anthropic", (provided) => provided("claude-opus-4-8"));
