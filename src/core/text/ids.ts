import { hash } from "#crypto";

/**
 * Branded identifiers. A brand costs nothing at run time and keeps a user id from being passed where a memory id is meant.
 */
declare const brand: unique symbol;
type Branded<T, B extends string> = T & { readonly [brand]: B };

/** The caller's name for a user; never guessed, never empty. */
export type UserId = Branded<string, "UserId">;
/** The caller's name for an agent that keeps memories of its own for a user. */
export type AgentId = Branded<string, "AgentId">;
/** The caller's name for one conversation of a user. */
export type ConversationId = Branded<string, "ConversationId">;
/** The name under which a compose is tracked, repeated and evicted: the caller's, else a generated one. */
export type RequestId = Branded<string, "RequestId">;
/** The memory source's id of a memory; unchanged when the memory's text is updated. */
export type MemoryId = Branded<string, "MemoryId">;
/** A block's visible name, printed as `[12]`; stable per scope and never reused. */
export type Label = Branded<number, "Label">;
/** A node of the context index, unique within one scope and never reused. */
export type NodeId = Branded<number, "NodeId">;
/** A stored turn, unique within one scope and never reused. */
export type TurnId = Branded<number, "TurnId">;
/** SHA-256 of some text, base64url. */
export type Digest = Branded<string, "Digest">;

/** The owner of a piece of state. No code path reads the state of another scope. */
export interface Scope {
  readonly tenant: string;
  readonly userId: UserId;
  /** Null: the user's own memories, shared by all agents that name none. */
  readonly agentId: AgentId | null;
}

/** A scope as the key of a map. It is JSON, which says where it ends: an id that follows needs no mark of its own. */
export function scopeName({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
}

/** SHA-256 of the text's UTF-8 bytes, base64url (43 characters). */
export function digestOf(text: string): Digest {
  return hash("sha256", text, "base64url") as Digest;
}
