/** Deeper arguments are compared as texts: no function takes them, and what walks them is recursive. */
const MOST_LEVELS = 64;
/** Decimals with more digits may be two numbers in a text and one in a program. */
const EXACT_DIGITS = 15;
const NUMBER = /-?\d[\d.eE+-]*/y;

/**
 * The arguments of a tool call by their value: without white space, fields in order, every character and number written one way. No
 * arguments are an empty object. What is no JSON stays as it is, and so does what is too deep; numbers that a program would round keep
 * their digits.
 */
export function canonicalArguments(given: unknown): string {
  // Some APIs have the value itself in place of its JSON.
  const json = typeof given === "string" ? given : (JSON.stringify(given ?? {}) ?? "{}");
  if (json.trim() === "") return "{}";
  const marked = isJson(json) ? withMarkedValues(json) : null;
  return marked === null ? json : written(JSON.parse(marked));
}

/**
 * The same JSON with a letter before what every string says, and numbers as such strings, so that a parser rounds nothing. Null where it
 * is too deep. Expects valid JSON.
 */
function withMarkedValues(json: string): string | null {
  const marked: string[] = [];
  let copied = 0;
  let levels = 0;
  for (let at = 0; at < json.length; ) {
    const sign = json[at] as string;
    if (sign === '"') {
      marked.push(json.slice(copied, at), '"s');
      copied = at + 1;
      at = endOfString(json, at);
    } else if (sign === "-" || (sign >= "0" && sign <= "9")) {
      NUMBER.lastIndex = at;
      const [digits = sign] = NUMBER.exec(json) ?? [];
      marked.push(json.slice(copied, at), `"n${canonicalNumber(digits)}"`);
      at += digits.length;
      copied = at;
    } else {
      if (sign === "[" || sign === "{") levels++;
      else if (sign === "]" || sign === "}") levels--;
      if (levels > MOST_LEVELS) return null;
      at++;
    }
  }
  marked.push(json.slice(copied));
  return marked.join("");
}

/** Where what follows a string begins. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** A value of marked JSON as plain JSON. */
function written(value: unknown): string {
  if (typeof value === "string") return value.startsWith("n") ? value.slice(1) : JSON.stringify(value.slice(1));
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, field]) => `${JSON.stringify(name.slice(1))}:${written(field)}`);
  return `{${fields.join(",")}}`;
}

function canonicalNumber(digits: string): string {
  const significant = digits
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+/, "");
  if (significant === "") return "0";
  const size = Math.abs(Number(digits));
  return significant.length > EXACT_DIGITS || size < 1e-300 || size > 1e300 ? digits : String(Number(digits));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
