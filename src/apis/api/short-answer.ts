import type { JsonObject } from "../../core/text/json.js";

/** A body's fields for a short answer: unstreamed, one choice. */
export function forShortAnswer({ stream: _stream, stream_options: _options, n: _n, ...body }: JsonObject): JsonObject {
  return body;
}
