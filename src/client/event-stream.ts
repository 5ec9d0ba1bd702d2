import { textsOf } from "./batch-lines.js";
import { MemstemConnectionError } from "./errors.js";
import type { Try } from "./sending.js";
import type { UsageEvent } from "./usage-answers.js";
import { fromWire } from "./wire-names.js";

/** Reads server-sent events (HTML Living Standard, 9.2.6) until their reader stops or the service ends them; comments are left out. */
export async function* usageEventsOf(response: Response, current: Try): AsyncGenerator<UsageEvent, void, undefined> {
  try {
    let rest = "";
    for await (const text of textsOf(response, current)) {
      const parts = `${rest}${text}`.split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const event = readEvent(part);
        if (event !== null) yield event;
      }
    }
  } finally {
    current.cancel();
  }
}

function readEvent(part: string): UsageEvent | null {
  const fields = new Map(
    part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  const [name, data] = [fields.get("event"), fields.get("data")];
  if (name === undefined || data === undefined) return null;
  try {
    return { [name]: fromWire(JSON.parse(data), []) } as unknown as UsageEvent;
  } catch (cause) {
    throw new MemstemConnectionError("an event of the usage is not JSON", { cause });
  }
}
