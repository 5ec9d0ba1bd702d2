import type { AiSdkOptions } from "memstem/ai-sdk";

/** A service's `compose` and `feedback`, in the library's form. */
export function remoteMemstem(base: string): AiSdkOptions["memstem"] {
  const post = async (path: string, given: object) => {
    const response = await fetch(`${base}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(withNames(given, snakeCase)),
    });
    const answer = (await response.json()) as object;
    if (!response.ok) throw new Error(JSON.stringify(answer));
    return withNames(answer, camelCase);
  };
  return {
    compose: async (options) => (await post("compose", options)) as never,
    feedback: (options) => post("feedback", options),
  };
}

/** The fields of an object, renamed; what is in them stays. */
function withNames(given: object, rename: (name: string) => string): object {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [rename(name), value]));
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}
