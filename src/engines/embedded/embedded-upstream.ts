import { type Upstream, UpstreamError } from "../upstream/upstream.js";
import { passedOn } from "../upstream/upstream-headers.js";
import type { FetchHandler } from "./embedded-openai.js";

const NAME = "memstem:engine";
/** Only the path is used; nothing listens there. */
const ADDRESS = "http://engine.invalid/v1/";

/** The embedded engine as the proxy's upstream, without a socket: calls go to the handler, answers are streamed back. */
export function embeddedUpstream(answer: FetchHandler): Upstream {
  return {
    name: NAME,
    send: async ({ method, path, query, headers, body }, signal) => {
      const failureOf = (error: unknown) =>
        new UpstreamError(NAME, signal.aborted ? { kind: "aborted" } : { kind: "broken", cause: nameOf(error) });
      try {
        const own = passedOn(headers).map(([name, value]): [string, string] => [name, value]);
        const request = new Request(`${ADDRESS}${path}${query}`, { method, headers: own, body, signal });
        const response = await answer(request);
        return { status: response.status, headers: [...response.headers], body: bytesOf(response, failureOf) };
      } catch (error) {
        throw failureOf(error);
      }
    },
  };
}

async function* bytesOf(
  { body }: Response,
  failureOf: (error: unknown) => UpstreamError,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (body !== null) for await (const bytes of body) yield bytes;
  } catch (error) {
    throw failureOf(error);
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
