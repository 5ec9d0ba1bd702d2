import {
  type ChatMessage,
  type Digest,
  type Label,
  labelsIn,
  type MemoryId,
  type ScopeChanges,
  type Warning,
  withoutLabels,
} from "../../core/index.js";
import type { StoredAnswer } from "../api/store.js";
import type { ComposedRecord, SaidTurn } from "./said-codec.js";
import type { SharedMessage } from "./shared-message.js";

/*
 * What a record loses when a memory is forgotten. Each gives the record itself where there is nothing to lose.
 */

/** Without a memory's labels in injections and retrievals, and without the memory in the answer. */
export function withoutMemory(said: ComposedRecord, gone: ReadonlySet<Label>, memoryId: MemoryId): ComposedRecord {
  const { request } = said;
  const turns = mapped(said.turns, (one) => turnWithout(one, gone));
  const answer = request === null ? null : answerWithout(request.answer, gone, memoryId);
  const isSame = turns === said.turns && answer === (request?.answer ?? null);
  if (isSame) return said;
  return { ...said, turns, request: request === null || answer === null ? null : { ...request, answer } };
}

/**
 * With null in place of the messages that are to be erased; their digests stay, as conversations continue from them. Of a shared one the
 * record loses the reference: a client may say it again later, and that is not to bring it back here.
 */
export function withErasedMessages(
  said: ComposedRecord,
  isErased: (message: ChatMessage | SharedMessage, digest: Digest) => boolean,
): ComposedRecord {
  const turns = mapped(said.turns, (one) => {
    const given = mapped(one.given, (message, at) =>
      message === null || isErased(message, one.turn.given[at] as Digest) ? null : message,
    );
    return given === one.given ? one : { ...one, given };
  });
  return turns === said.turns ? said : { ...said, turns };
}

/**
 * Without the blocks that are gone and the memory's versions: nothing of its text is left. Labels elsewhere stay, and so the changes must
 * not be folded any more: a later snapshot has the state without them.
 */
export function changesWithout(changes: ScopeChanges, gone: ReadonlySet<Label>, memoryId: MemoryId): ScopeChanges {
  const { register } = changes;
  const blocks = register.blocks.filter(({ label }) => !gone.has(label));
  const versions = register.versions.filter((version) => version.memoryId !== memoryId && !gone.has(version.label));
  const isSame = blocks.length === register.blocks.length && versions.length === register.versions.length;
  return isSame ? changes : { ...changes, register: { ...register, blocks, versions } };
}

function turnWithout(said: SaidTurn, gone: ReadonlySet<Label>): SaidTurn {
  const { turn } = said;
  const isNamed = [...labelsIn(turn.injection), ...turn.requested].some((label) => gone.has(label));
  if (!isNamed) return said;
  const requested = turn.requested.filter((label) => !gone.has(label));
  return { ...said, turn: { ...turn, injection: withoutLabels(turn.injection, gone), requested } };
}

function answerWithout(answer: StoredAnswer, gone: ReadonlySet<Label>, memoryId: MemoryId): StoredAnswer {
  const kept = answer.memories.filter((memory) => memory.memoryId !== memoryId && !gone.has(memory.label));
  const memories = mapped(kept, (memory) =>
    memory.replaces.some((label) => gone.has(label))
      ? { ...memory, replaces: memory.replaces.filter((label) => !gone.has(label)) }
      : memory,
  );
  const warnings = answer.warnings.some(({ memoryIds }) => memoryIds?.includes(memoryId))
    ? answer.warnings.flatMap((warning) => warningWithout(warning, memoryId))
    : answer.warnings;
  const isSame = memories.length === answer.memories.length && memories === kept && warnings === answer.warnings;
  return isSame ? answer : { ...answer, memories, warnings };
}

/** Nothing of a warning that is about this memory alone. */
function warningWithout(warning: Warning, memoryId: MemoryId): readonly Warning[] {
  const { memoryIds } = warning;
  if (!memoryIds?.includes(memoryId)) return [warning];
  const others = memoryIds.filter((id) => id !== memoryId);
  return others.length === 0 ? [] : [{ ...warning, memoryIds: others }];
}

/** The mapped list; the list itself where every element maps to itself. */
function mapped<Value>(list: readonly Value[], map: (value: Value, at: number) => Value): readonly Value[] {
  const results = list.map(map);
  return results.every((result, at) => result === list[at]) ? list : results;
}
