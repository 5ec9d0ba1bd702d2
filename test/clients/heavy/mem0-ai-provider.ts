import { runMem0Provider } from "./mem0-provider-program.js";

runMem0Provider("Responses", "openai", (provided) => provided("gpt-5-mini"));
