import type { Readable } from "node:stream";

/** Collects what a child process prints; read it when the process has ended. */
export function childOutput(child: { readonly stdout: Readable; readonly stderr: Readable }) {
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      output[stream] += text;
    });
  }
  return output;
}
