import { z } from "zod";
import {
  type Annotation,
  BY_LINES,
  BY_LIST,
  BY_SHAPES,
  type InjectedBlock,
  type Injection,
  type Label,
} from "../../core/index.js";
import { isArrayOf, isEither, isInt, isInts, isOneOf, isText, rowsOf } from "./row-shapes.js";

/** How texts are escaped, by its number; absent in those from before the first of them: by the list. */
const ESCAPED_BY = { shapes: 2, lines: 3 } as const;

const labels = z.array(z.int());
const between = z.string().optional();
const annotation = z.union([
  z.strictObject({ kind: z.enum(["order", "location"]), template: z.string(), labels, between }),
  z.strictObject({ kind: z.literal("restored"), label: z.int(), replaces: labels, between }),
]) as unknown as z.ZodType<Annotation>;

/**
 * A label; or a label, the labels that it replaces, the separator between them where it is not today's, and the configured markers that are
 * escaped in its text.
 */
type PackedBlock = number | readonly [number, readonly Label[], (string | null)?, (readonly string[])?];
const isBlock = isEither(
  isInt,
  isArrayOf({
    first: [isInt, isInts],
    optional: [isEither(isText, isOneOf(null)), isArrayOf({ first: [], rest: isText })],
  }),
);

/** The shape of an injection as it is stored: short arrays, as at k = 100 it is much of what a compose writes. */
export const packedInjection = z.strictObject({
  b: rowsOf<PackedBlock>("an injected block", isBlock),
  a: z.array(annotation).readonly(),
  /** The separator between labels, in those from before there was none. */
  s: z.string().optional(),
  e: z.literal(Object.values(ESCAPED_BY)).optional(),
});

export type PackedInjection = z.output<typeof packedInjection>;

const NO_LABELS: readonly Label[] = [];

export function packInjection({ blocks, annotations }: Injection): PackedInjection {
  const packed = blocks.map(({ label, replaces, between, escaping }): PackedBlock => {
    const markers = escaping?.markers ?? [];
    if (markers.length > 0) return [label, replaces, between ?? null, markers];
    if (replaces.length === 0) return label;
    return between === undefined ? [label, replaces] : [label, replaces, between];
  });
  // All blocks of a turn are escaped in one way.
  const by = blocks[0]?.escaping?.by ?? "lines";
  return { b: packed, a: annotations, ...(by === "list" ? {} : { e: ESCAPED_BY[by] }) };
}

export function unpackInjection({ b, a, s, e }: PackedInjection): Injection {
  const before = s === undefined ? {} : { between: s };
  const plain = e === ESCAPED_BY.lines ? undefined : e === ESCAPED_BY.shapes ? BY_SHAPES : BY_LIST;
  const blocks = b.map((block): InjectedBlock => {
    const [label, replaces, between, markers] = typeof block === "number" ? [block, NO_LABELS] : block;
    const apart = between == null ? before : { between };
    const escaping = markers === undefined ? plain : { ...(plain ?? BY_LINES), markers };
    return {
      label: label as Label,
      replaces,
      ...(replaces.length === 0 ? {} : apart),
      ...(escaping === undefined ? {} : { escaping }),
    };
  });
  return { blocks, annotations: a.map((annotation) => ({ ...before, ...annotation })) };
}
