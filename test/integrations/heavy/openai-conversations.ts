import { OpenAIConversationsSession } from "@openai/agents";

type Client = NonNullable<NonNullable<ConstructorParameters<typeof OpenAIConversationsSession>[0]>["client"]>;
type Item = Readonly<Record<string, unknown>>;

/** A session that OpenAI's Conversations API would keep: as that API does, it knows items by ids of its own, and a text as a part. */
export function conversationsSession(): OpenAIConversationsSession {
  const kept: Item[] = [];
  const client = {
    conversations: {
      create: async () => ({ id: "conv_1" }),
      items: {
        create: async (_id: string, { items }: { readonly items: readonly Item[] }) => {
          for (const item of items)
            kept.push({ id: `item_${kept.length}`, type: "message", ...item, ...asParts(item) });
        },
        async *list() {
          yield* kept;
        },
      },
    },
  };
  return new OpenAIConversationsSession({ client: client as unknown as Client });
}

function asParts({ content, role }: Item): Item {
  if (typeof content !== "string") return {};
  return { content: [{ type: role === "assistant" ? "output_text" : "input_text", text: content }] };
}
