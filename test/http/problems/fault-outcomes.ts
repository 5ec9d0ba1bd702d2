import type { IncomingMessage } from "node:http";
import type { FaultDoor, Json } from "./fault-wires.js";
import { BIG, type EngineConduct, MALFORMED } from "./faulty-engine.js";

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
  { client, engine }: FaultDoor,
  { statusCode, headers }: IncomingMessage,
  body: Buffer,
): string | null {
  const text = () => body.toString("utf8");
  const check = (isRight: boolean) => {
    if (isRight) return null;
    return `${statusCode} ${body.subarray(0, 200).toString("utf8")} … ${body.subarray(-200).toString("utf8")}`;
  };
  const answer = () => client.textOf(JSON.parse(text()) as Json);
  const holds = (code: keyof typeof WRITTEN) =>
    text().includes(client.path === "/v1/messages" ? WRITTEN[code] : `"code":"${code}"`);
  const isPassed = client === engine;
  switch (happening) {
    case "answers whole":
      return check(statusCode === 200 && answer() === "Indeed.");
    case "answers 10 MB whole":
      return check(statusCode === 200 && answer().length === BIG.text.length * BIG.times);
    case "answers in a stream":
      return check(statusCode === 200 && client.isEnded(text()) && text().includes("think."));
    case "answers 10 MB in a stream":
      return check(statusCode === 200 && client.isEnded(text()) && holdsBigEvents(body, isPassed, client));
    case "dies in a stream":
      return check(statusCode === 200 && holds("upstream_broken"));
    case "dies in a whole answer":
    case "answers with another protocol":
      return check(statusCode === 502 && holds("upstream_broken"));
    case "sends malformed events":
      return check(statusCode === 200 && (isPassed ? body.equals(MALFORMED) : holds("upstream_broken")));
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

/** Whether every event came: the same bytes where they are passed on, else each one's text. */
function holdsBigEvents(body: Buffer, isPassed: boolean, { delta }: FaultDoor["client"]): boolean {
  if (isPassed) {
    const events = Buffer.from(delta(BIG.text).repeat(BIG.times));
    return body.subarray(0, events.length).equals(events);
  }
  let times = 0;
  for (let at = body.indexOf(BIG.text); at !== -1; at = body.indexOf(BIG.text, at + BIG.text.length)) times += 1;
  return times >= BIG.times;
}
