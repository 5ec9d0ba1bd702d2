/** Characters of a model's name that count. */
const MODEL_CHARACTERS = 200;

/** The model that a client's body names, as far as it is told apart by; empty for none. */
export function modelName(model: unknown): string {
  return typeof model === "string" ? model.slice(0, MODEL_CHARACTERS) : "";
}
