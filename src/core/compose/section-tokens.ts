import type { BlockRegister } from "../blocks/block-register.js";
import type { ResidencyModel, SectionTokens } from "../context-index/residency.js";
import type { KnownTurns } from "../context-index/serving.js";
import { type PromptSection, type Replay, sectionPrefixTokens } from "../conversation/replay.js";
import { SECTION_OPENING } from "../prompt/rendering.js";
import type { Digest } from "../text/ids.js";
import type { TokenCounter } from "../text/token-counter.js";

/** A prompt's own section. */
export interface OwnSection extends PromptSection {
  /** Of blocks without labels: the anchor of sections with labels, which have the same before their blocks. Null: the section's own. */
  readonly sharedAnchor: Digest | null;
}

/**
 * A prompt's sections as residency models read them, its own last, and how much of the conversation the index holds. Earlier sections are
 * counted only if needed, because conversations can be long: for a model with {@link ResidencyModel.foresee}, and with restated turns,
 * which no earlier prompt contains in this form.
 */
export function promptSections(
  replay: Replay,
  own: OwnSection,
  { foresee }: Pick<ResidencyModel, "foresee">,
  register: BlockRegister,
  countTokens: TokenCounter,
  hasRestated = false,
): { readonly sections: readonly SectionTokens[]; readonly known: KnownTurns } {
  const isAllKnown = foresee === undefined && !hasRestated;
  const shared = own.sharedAnchor === null ? [] : [{ ...own, anchor: own.sharedAnchor, blocks: [], end: own.before }];
  const read = [...(isAllKnown ? [] : replay.sections), ...shared, own];
  return {
    sections: read.map((section) => sectionTokens(section, register, countTokens)),
    known: { sections: replay.cachedSections, end: replay.cachedEnd, tokens: replay.cachedTokens },
  };
}

/** A section as residency models read it. */
function sectionTokens(
  { anchor, blocks, before, end, sentBy }: PromptSection,
  register: BlockRegister,
  countTokens: TokenCounter,
): SectionTokens {
  const labels = blocks.map(({ label }) => label);
  const opening = countTokens(SECTION_OPENING);
  const blockTokens = blocks.reduce((sum, block) => sum + register.lineTokens(block), 0);
  const opened = before + (countTokens.template?.beforeText ?? 0);
  return {
    anchor,
    labels,
    before: before + opening,
    behind: Math.max(0, end - before - opening - blockTokens),
    end,
    sentBy,
    upTo: (count, goesOn) => {
      if (count === 0) return goesOn ? opened + opening : opened;
      return opened + sectionPrefixTokens(blocks.slice(0, count), register, countTokens);
    },
  };
}
