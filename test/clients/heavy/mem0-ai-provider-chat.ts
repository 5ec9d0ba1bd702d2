import { runMem0Provider } from "./mem0-provider-program.js";

runMem0Provider("chat completions", "openai", (provided) => provided.chat("gpt-5-mini"));
