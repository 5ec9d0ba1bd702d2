import { describe, expect, it } from "vitest";
import { EMPTY_SCOPE, ScopeState } from "../../../src/core/compose/scope-state.js";
import { Conversation } from "../../../src/core/conversation/conversation.js";
import type { ConversationId } from "../../../src/core/text/ids.js";
import { countTokens } from "./scope-fixture.js";

/** A scope that keeps two conversations loaded, and which ones were loaded so far. */
function smallScope() {
  const scope = new ScopeState(EMPTY_SCOPE, countTokens, { maxIndexNodes: 10, maxLoadedConversations: 2 });
  const loaded: string[] = [];
  const open = (name: string) =>
    scope.conversation(name as ConversationId, () => {
      loaded.push(name);
      return new Conversation([]);
    });
  return { scope, loaded, open };
}

describe("a scope's state", () => {
  it('"unbounded maps: every in-memory structure has a stated bound": unloads the least recently used conversation', () => {
    const { loaded, open } = smallScope();
    const one = open("one");
    open("two");
    expect(open("one")).toBe(one);
    open("three");
    expect(open("one")).toBe(one);
    open("two");
    expect(loaded).toEqual(["one", "two", "three", "two"]);
  });
});
