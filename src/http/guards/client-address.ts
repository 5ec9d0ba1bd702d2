import { isIPv6 } from "node:net";

/**
 * Whose connection it is, as far as its address says: an IPv4 address, or the /64 that one subscriber has of IPv6. It is the socket's own:
 * what a header says of it (`X-Forwarded-For`) can be anything.
 */
export function clientOf(address: string | undefined): string {
  const text = (address ?? "").replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!isIPv6(text)) return text;
  const [front = "", back] = text.split("::");
  const groups = (part: string) => part.split(":").filter((group) => group !== "");
  // A dotted end stands for two groups.
  const count = (list: readonly string[]) => list.length + (list.at(-1)?.includes(".") ? 1 : 0);
  const [before, after] = [groups(front), groups(back ?? "")];
  const all = [...before, ...Array<string>(Math.max(0, 8 - count(before) - count(after))).fill("0"), ...after];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
