import { describe, expect, it } from "vitest";
import { DEFAULT_ANNOTATIONS, locationAnnotation, orderAnnotation } from "../../../src/core/prompt/annotations.js";
import {
  type Injection,
  isEmptyInjection,
  labelsIn,
  NOTHING_INJECTED,
  withoutLabels,
} from "../../../src/core/prompt/injection.js";
import { label, labels } from "../context-index/served-sequences.js";

const FIFTEEN = labels(...Array.from({ length: 15 }, (_, n) => n + 1));

describe("order annotation", () => {
  it("is not there where nothing moved", () => {
    expect(orderAnnotation(labels(3, 1, 2), labels(3, 1, 2), DEFAULT_ANNOTATIONS)).toEqual([]);
    expect(orderAnnotation([], [], DEFAULT_ANNOTATIONS)).toEqual([]);
  });

  it("ranks the most relevant blocks, best first, where any block moved", () => {
    const [annotation] = orderAnnotation(FIFTEEN, FIFTEEN.toReversed(), DEFAULT_ANNOTATIONS);
    expect(annotation).toMatchObject({ kind: "order", labels: FIFTEEN.slice(0, 10) });
    expect(orderAnnotation(labels(1, 2, 3), labels(1, 3, 2), DEFAULT_ANNOTATIONS)).toHaveLength(1);
  });

  it("is not there when it is switched off, or may name nothing", () => {
    for (const settings of [{ order: false }, { topN: 0 }]) {
      expect(orderAnnotation(labels(1, 2), labels(2, 1), { ...DEFAULT_ANNOTATIONS, ...settings })).toEqual([]);
    }
  });
});

describe("location annotation", () => {
  it("names the most relevant of what was given earlier, best first", () => {
    const annotations = locationAnnotation(FIFTEEN, { ...DEFAULT_ANNOTATIONS, topN: 3 });
    expect(annotations).toEqual([
      { kind: "location", template: DEFAULT_ANNOTATIONS.wording.location, labels: labels(1, 2, 3) },
    ]);
  });

  it("is not there where nothing was given earlier, when it is switched off, or may name nothing", () => {
    expect(locationAnnotation([], DEFAULT_ANNOTATIONS)).toEqual([]);
    for (const settings of [{ location: false }, { topN: 0 }]) {
      expect(locationAnnotation(labels(1), { ...DEFAULT_ANNOTATIONS, ...settings })).toEqual([]);
    }
  });
});

describe("an injection", () => {
  const injection: Injection = {
    blocks: [
      { label: label(5), replaces: labels(1, 2) },
      { label: label(6), replaces: [] },
    ],
    annotations: [
      { kind: "restored", label: label(3), replaces: labels(4) },
      { kind: "order", template: "{labels}", labels: labels(6, 5) },
      { kind: "location", template: "{labels}", labels: labels(3) },
    ],
  };

  it("names every label that occurs in it in any role", () => {
    expect(labelsIn(injection)).toEqual(new Set([1, 2, 3, 4, 5, 6]));
  });

  it("loses blocks and every reference to them when labels are forgotten, and lines left with nothing to say", () => {
    expect(withoutLabels(injection, new Set(labels(2, 3, 6)))).toEqual({
      blocks: [{ label: 5, replaces: [1] }],
      annotations: [{ kind: "order", template: "{labels}", labels: [5] }],
    });
    expect(withoutLabels(injection, new Set(labels(4))).annotations[0]).toEqual({
      kind: "restored",
      label: 3,
      replaces: [],
    });
    expect(withoutLabels(injection, new Set([...labelsIn(injection)]))).toEqual(NOTHING_INJECTED);
  });

  it("stays as it is where it holds none of the forgotten labels", () => {
    expect(withoutLabels(injection, new Set(labels(77)))).toEqual(injection);
  });

  it("is empty only without blocks and annotations", () => {
    expect(isEmptyInjection(NOTHING_INJECTED)).toBe(true);
    expect(isEmptyInjection({ ...injection, annotations: [] })).toBe(false);
    expect(isEmptyInjection({ ...injection, blocks: [] })).toBe(false);
  });
});
