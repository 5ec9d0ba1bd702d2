const user = { default: "ana", description: "Whose memories, percent-encoded." };
const agent = { default: "planner", description: "An agent with its own memories of this user, percent-encoded." };
const conversation = { default: "trip", description: "Names the conversation, percent-encoded." };

/** The base URLs of the proxy's paths, as an operation's servers: they say what a header or the body says otherwise. */
export const PROXY_SERVERS = [
  { url: "/", description: "The user is named in a header or in the body." },
  { url: "/users/{user_id}", description: "Names the user.", variables: { user_id: user } },
  {
    url: "/users/{user_id}/conversations/{conversation_id}",
    description: "Names the user and a conversation.",
    variables: { user_id: user, conversation_id: conversation },
  },
  {
    url: "/users/{user_id}/agents/{agent_id}",
    description: "Names the user and an agent.",
    variables: { user_id: user, agent_id: agent },
  },
  {
    url: "/users/{user_id}/agents/{agent_id}/conversations/{conversation_id}",
    description: "Names the user, an agent and a conversation.",
    variables: { user_id: user, agent_id: agent, conversation_id: conversation },
  },
  { url: "/plain", description: "Nothing is composed, and nobody has to be named." },
];
