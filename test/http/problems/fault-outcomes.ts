import type { IncomingMessage } from "node:http";
import type { Received } from "../server/received.js";
import type { FaultWire, Json } from "./fault-wires.js";
import { BIG, type EngineConduct, MALFORMED, streamBegun } from "./faulty-engine.js";

/** What can happen to a call. */
export type Happening = EngineConduct | "refuses" | "client leaves before the answer";

/** How an error that ends an answer is written: by its code, or in Anthropic's form by what it says. */
const WRITTEN = {
  upstream_broken: "broke off its answer",
  upstream_timeout: "did not begin to answer",
  upstream_unreachable: "could not be reached",
} as const;

/** Compares with what a client of this call should see; null where it is that. */
export function wrongAnswer(
  happening: Happening,
  wire: FaultWire,
  { statusCode, headers }: IncomingMessage,
  { bytes, isWhole }: Received,
): string | null {
  const text = () => bytes.toString("utf8");
  const check = (isRight: boolean) => {
    if (isRight && isWhole === (happening !== "dies in a stream")) return null;
    return `${statusCode} ${isWhole} ${bytes.subarray(0, 200).toString("utf8")} … ${bytes.subarray(-200).toString("utf8")}`;
  };
  const answer = () => wire.textOf(JSON.parse(text()) as Json);
  const holds = (code: keyof typeof WRITTEN) =>
    text().includes(wire.api.name === "messages" ? WRITTEN[code] : `"code":"${code}"`);
  switch (happening) {
    case "answers whole":
      return check(statusCode === 200 && answer() === "Indeed.");
    case "answers 10 MB whole":
      return check(statusCode === 200 && answer().length === BIG.text.length * BIG.times);
    case "answers in a stream":
      return check(statusCode === 200 && wire.isEnded(text()) && text().includes("think."));
    case "answers 10 MB in a stream":
      return check(statusCode === 200 && wire.isEnded(text()) && holdsBigEvents(bytes, wire));
    case "dies in a stream":
      return check(statusCode === 200 && text() === streamBegun(wire));
    case "dies in a whole answer":
    case "answers with another protocol":
      return check(statusCode === 502 && holds("upstream_broken"));
    case "sends malformed events":
      return check(statusCode === 200 && bytes.equals(MALFORMED));
    case "limits the rate":
      return check(statusCode === 429 && headers["retry-after"] === "7" && text().includes("Slower."));
    case "hangs before headers":
      return check(statusCode === 504 && holds("upstream_timeout"));
    case "refuses":
      return check(statusCode === 502 && holds("upstream_unreachable"));
    default:
      return check(false);
  }
}

/** Whether every event came, byte for byte. */
function holdsBigEvents(body: Buffer, { delta }: FaultWire): boolean {
  const events = Buffer.from(delta(BIG.text).repeat(BIG.times));
  return body.subarray(0, events.length).equals(events);
}
