import { ApiError, openStream } from "./api.js";

/** One server-sent event. */
export interface ServerEvent {
  readonly type: string;
  readonly data: string;
}

/** What listens to a stream of events. */
export interface EventListenerParts {
  onEvent(event: ServerEvent): void;
  /** Whether the stream is open; called at every change. */
  onOpen(isOpen: boolean): void;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Answers that the next try would get again: no valid key, no such filter, or no such events. */
const ENDS: ReadonlySet<number> = new Set([400, 401, 403, 404, 501]);

/**
 * Reads server-sent events until the signal aborts, and connects again where the stream ends. `EventSource` sends no headers, so no key; this
 * does. A key that is not valid ends it.
 */
export async function readEvents(
  path: string,
  { onEvent, onOpen }: EventListenerParts,
  signal: AbortSignal,
): Promise<void> {
  let wait = FIRST_WAIT_MS;
  let lastId = "";
  while (!signal.aborted) {
    try {
      const headers = { accept: "text/event-stream", ...(lastId === "" ? {} : { "last-event-id": lastId }) };
      const response = await openStream(path, headers, signal);
      onOpen(true);
      wait = FIRST_WAIT_MS;
      for await (const { id, ...event } of eventsOf(response)) {
        if (id !== null) lastId = id;
        onEvent(event);
      }
    } catch (error) {
      if (error instanceof ApiError && ENDS.has(error.status)) return onOpen(false);
    }
    if (signal.aborted) return;
    onOpen(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  }
}

/** The events of a stream, by the lines of the WHATWG's `text/event-stream`. Comments and `retry` are ignored. */
async function* eventsOf(response: Response): AsyncGenerator<ServerEvent & { readonly id: string | null }> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const parts = (rest + read.value).split(/\r?\n\r?\n/);
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const fields = part.split(/\r?\n/).map((line) => /^([^:]*):? ?(.*)$/.exec(line) ?? []);
      const all = (name: string) => fields.filter(([, field]) => field === name).map(([, , value = ""]) => value);
      const data = all("data");
      if (data.length > 0)
        yield { type: all("event").at(-1) ?? "message", data: data.join("\n"), id: all("id").at(-1) ?? null };
    }
  }
}
