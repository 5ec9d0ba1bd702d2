import {
  type Annotation,
  BY_LINES,
  BY_LIST,
  BY_SHAPES,
  type InjectedBlock,
  type Injection,
  type Label,
} from "../../core/index.js";
import {
  isArrayOf,
  isEither,
  isInt,
  isInts,
  isListOf,
  isObjectOf,
  isOneOf,
  isText,
  named,
  orNull,
  shaped,
} from "./row-shapes.js";

/** How texts are escaped, by its number; absent in those from before the first of them: by the list. */
const ESCAPED_BY = { shapes: 2, lines: 3 } as const;

const isAnnotation = isEither(
  isObjectOf({ kind: isOneOf("order", "location"), template: isText, labels: isInts }, { between: isText }),
  isObjectOf({ kind: isOneOf("restored"), label: isInt, replaces: isInts }, { between: isText }),
);

/**
 * A label; or a label, the labels that it replaces, the separator between them where it is not today's, and the configured markers that are
 * escaped in its text.
 */
type PackedBlock = number | readonly [number, readonly Label[], (string | null)?, (readonly string[])?];
const isBlock = isEither(isInt, isArrayOf({ first: [isInt, isInts], optional: [orNull(isText), isListOf(isText)] }));

/** An injection as it is stored: short arrays, as at k = 100 it is much of what a compose writes. */
export interface PackedInjection {
  readonly b: readonly PackedBlock[];
  readonly a: readonly Annotation[];
  /** The separator between labels, in those from before there was none. */
  readonly s?: string;
  readonly e?: (typeof ESCAPED_BY)[keyof typeof ESCAPED_BY];
}

export const isInjection = named(
  "an injection",
  isObjectOf(
    { b: isListOf(named("an injected block", isBlock)), a: isListOf(named("an annotation", isAnnotation)) },
    { s: isText, e: isOneOf(...Object.values(ESCAPED_BY)) },
  ),
);
export const packedInjection = shaped<PackedInjection>("an injection", isInjection);

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
