/*
 * What `@mem0/vercel-ai-provider` 3.0.2 writes, as it writes it: its templates, filled. `npm run clients` has the package itself write it.
 */

const SENTENCES =
  "These are the memories I have stored. Give more weightage to the question by users and try to answer that first. You have to modify your answer based on the memories I have provided. If the memories are irrelevant you can ignore them. Also don't reply to this section of the prompt, or the memories, they are only for your reference. The System prompt starts after text System Message: \n\n";

/** The system message that it puts in front of a prompt. */
export function ownMessage(texts: readonly string[]): string {
  return `${retrieved(texts)} `;
}

/** What its `retrieveMemories` gives. */
export function retrieved(texts: readonly string[]): string {
  return `System Message: ${SENTENCES} ${texts.map((text) => `Memory: ${text}\n\n`).join("\n\n")}`;
}
