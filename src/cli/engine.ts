import { MODEL_SHAPES, type ModelSize, writeRandomModel } from "../engines/random-model.js";

/** Options of `memstem engine random-model`. */
export interface RandomModelOptions {
  readonly size: ModelSize;
  readonly out: string;
  readonly seed: number;
}

/** Writes a model with random weights and says what it is. Rejects where the file exists already or cannot be written. */
export async function runRandomModel(options: RandomModelOptions, print: (line: string) => void): Promise<void> {
  const { size, out, seed } = options;
  const { bytes, parameters } = await writeRandomModel(out, { name: size, shape: MODEL_SHAPES[size], seed });
  const [millions, megabytes] = [parameters, bytes].map((number) => Math.round(number / 1e6));
  print(`${out}: ${millions} million random parameters, ${megabytes} MB; its text is noise`);
}
