import { hash } from "#crypto";

/** Branded ids: a user id cannot be passed as a memory id. */
declare const brand: unique symbol;
type Branded<T, B extends string> = T & { readonly [brand]: B };

export type UserId = Branded<string, "UserId">;
/** An agent with its own memories of a user. */
export type AgentId = Branded<string, "AgentId">;
export type ConversationId = Branded<string, "ConversationId">;
/** The caller's, else a generated one. */
export type RequestId = Branded<string, "RequestId">;
/** The source's; unchanged when the memory's text is updated. */
export type MemoryId = Branded<string, "MemoryId">;
/** A block's visible name, printed as `[12]`. Labels, nodes and turns are unique per scope and never reused. */
export type Label = Branded<number, "Label">;
export type NodeId = Branded<number, "NodeId">;
export type TurnId = Branded<number, "TurnId">;
/** SHA-256, base64url. */
export type Digest = Branded<string, "Digest">;

export interface Scope {
  readonly tenant: string;
  readonly userId: UserId;
  /** Null: the user's own memories, shared by all agents that name none. */
  readonly agentId: AgentId | null;
}

/** As a map key. JSON marks its own end, so an id can follow. */
export function scopeName({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
}

/** Of the text's UTF-8 bytes; 43 characters. */
export function digestOf(text: string): Digest {
  return hash("sha256", text, "base64url") as Digest;
}
