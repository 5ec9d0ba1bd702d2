import fc from "fast-check";

/** A call as the model meant it. */
export interface MeantCall {
  readonly id: string;
  readonly name: string;
  /** Empty: the engine gives no arguments. */
  readonly json: string;
}

/** The calls of a streamed answer, and the order in which an engine sends their fragments. */
export interface StreamedFragments {
  /** In the order in which they begin, which only calls with ids of their own, or none, keep. */
  readonly calls: readonly MeantCall[];
  /** Deltas of a chat completion's chunks. */
  readonly deltas: readonly object[];
  /** Said between them. */
  readonly text: string;
  /** Whether the engine gives its calls ids, each one of its own. */
  readonly hasIds: boolean;
  readonly haveOneId: boolean;
  readonly hasWholeNames: boolean;
}

/** None of them begins another: parts of such names could not be told apart. */
export const TOOL_NAMES = ["look_up", "look_out", "brew", "w"];

/** How engines tell calls apart: with it, fragments may come in any order, or of one call behind the other's. */
const WAYS = [
  { ids: ["first", "every", "late", "none"], indexes: ["own", "text"], isMixed: true },
  { ids: ["every"], indexes: ["absent", "null", "zero", "own", "text"], isMixed: true },
  { ids: ["first"], indexes: ["absent", "null", "zero"], isMixed: false },
  // One id for all calls.
  { ids: ["same first", "same every"], indexes: ["own", "text"], isMixed: true },
  // By the end of the arguments alone.
  { ids: ["late", "none"], indexes: ["absent", "zero"], isMixed: false },
] as const;
type IdPlace = (typeof WAYS)[number]["ids"][number];
type IndexKind = (typeof WAYS)[number]["indexes"][number];

/** Where a name stands: in one fragment, in all, in two halves, or behind the first arguments. */
const NAMES = ["first", "every", "halves", "behind"] as const;
const ABSENT_IDS = [{}, { id: "" }, { id: null }];
const HARD_TEXTS = ["t", "a b", '"', "}{", "\\", "é🍵"];

const anyJson = fc.oneof(
  fc.constant({}),
  fc.dictionary(
    fc.constantFrom(...HARD_TEXTS),
    fc.oneof(fc.constantFrom(...HARD_TEXTS), fc.jsonValue({ maxDepth: 2 })),
  ),
);

/** Every order in which the fragments of calls may come. */
export const anyFragments: fc.Arbitrary<StreamedFragments> = fc
  .record({
    way: fc.constantFrom(...WAYS),
    names: fc.constantFrom(...NAMES),
    absentId: fc.constantFrom(...ABSENT_IDS),
    inputs: fc.array(anyJson, { minLength: 1, maxLength: 4 }),
    choices: fc.array(fc.nat({ max: 60 }), { minLength: 1, maxLength: 40 }),
  })
  .map(({ way, names, absentId, inputs, choices }) => {
    let at = 0;
    const choose = (among: number) => (choices[at++ % choices.length] ?? 0) % among;
    const pick = <T>(from: readonly T[]) => from[choose(from.length)] as T;
    const idPlace = pick<IdPlace>(way.ids);
    const indexKind = pick<IndexKind>(way.indexes);
    const isByEnds = !way.isMixed && idPlace !== "first";
    const isSame = idPlace.startsWith("same");
    const meant = inputs.map((input, of) => {
      const json = JSON.stringify(isSame ? { ...(input as object), of } : input);
      const isNothing = isSame ? choose(3) === 0 : json === "{}" && !isByEnds && choose(2) === 0;
      return { id: isSame ? "call_0" : `call_${of}`, name: pick(TOOL_NAMES), json: isNothing ? "" : json };
    });
    // Under one id and one name, indexes are those of calls where the arguments of two begin; else of one call, named again.
    if (isSame)
      for (const call of meant) {
        const given = meant.filter(({ name, json }) => name === call.name && json !== "");
        if (given.length < 2 && call.json === "") call.json = `{"of":${meant.indexOf(call)}}`;
      }
    const pieces = meant.map((call, of) => {
      const given = piecesOf(call.json, 1 + choose(4), choose);
      const name = isByEnds || (isSame && names !== "every") ? "first" : names;
      const behind = Math.min(given.length - 1, 1);
      return given.map((json, piece) => ({
        of,
        fragment: {
          id: undefined,
          ...(hasId(idPlace, piece, given.length) ? { id: call.id } : absentId),
          ...indexOf(indexKind, of),
          type: "function",
          function: { name: namePart(call.name, name, piece, behind), arguments: json },
        },
      }));
    });
    const order = way.isMixed ? mixed(pieces, choose) : pieces.flat();
    const deltas: object[] = [{ role: "assistant", content: "" }];
    let text = "";
    for (let from = 0; from < order.length; ) {
      const to = from + 1 + choose(3);
      deltas.push({ tool_calls: order.slice(from, to).map(({ fragment }) => fragment) });
      from = to;
      if (choose(4) > 0) continue;
      text += `${from}, `;
      deltas.push({ content: `${from}, ` });
    }
    const telling = order.filter(({ fragment: { id, function: called } }) => id || called.name || called.arguments);
    const began = [...new Set(telling.map(({ of }) => of))].flatMap((of) => meant[of] ?? []);
    return {
      calls: began,
      deltas,
      text,
      haveOneId: isSame,
      hasIds: idPlace !== "none" && !isSame,
      hasWholeNames: isByEnds || isSame || names !== "halves",
    };
  });

function hasId(place: IdPlace, piece: number, pieces: number): boolean {
  if (place.startsWith("same")) return place === "same every" || piece === 0;
  return place === "every" || (place === "first" && piece === 0) || (place === "late" && piece === pieces - 1);
}

/** A text in pieces, of which some may be empty. */
function piecesOf(text: string, count: number, choose: (among: number) => number): readonly string[] {
  const cuts = Array.from({ length: count - 1 }, () => choose(text.length + 1)).sort((a, b) => a - b);
  return [0, ...cuts].map((from, at) => text.slice(from, cuts[at]));
}

function namePart(name: string, place: (typeof NAMES)[number], piece: number, behind: number): string | null {
  switch (place) {
    case "first":
      return piece === 0 ? name : null;
    case "every":
      return name;
    case "halves":
      if (behind === 0) return name;
      return piece === 0 ? name.slice(0, 2) : piece === behind ? name.slice(2) : "";
    case "behind":
      return piece === behind ? name : "";
  }
}

function indexOf(kind: IndexKind, own: number): object {
  switch (kind) {
    case "own":
      return { index: own };
    case "text":
      return { index: String(own) };
    case "zero":
      return { index: 0 };
    case "null":
      return { index: null };
    case "absent":
      return {};
  }
}

/** Several lists as one, each in its own order. */
function mixed<T>(lists: readonly (readonly T[])[], choose: (among: number) => number): readonly T[] {
  const left = lists.map((list) => [...list]);
  const all: T[] = [];
  for (;;) {
    const open = left.filter(({ length }) => length > 0);
    if (open.length === 0) return all;
    const next = open[choose(open.length)]?.shift();
    if (next !== undefined) all.push(next);
  }
}
