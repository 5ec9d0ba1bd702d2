import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  Arg,
  Cmd,
  Copy,
  DockerfileParser,
  Entrypoint,
  Env,
  From,
  Healthcheck,
  type Instruction,
  Label,
  type PropertyInstruction,
  Run,
  User,
  Volume,
  Workdir,
} from "dockerfile-ast";
import { z } from "zod";

const PROJECT = resolve(import.meta.dirname, "../..");

/** What fills a stage's file system. Paths are the image's own. */
export type Step =
  | { readonly kind: "workdir"; readonly path: string }
  | { readonly kind: "run"; readonly command: string }
  | {
      readonly kind: "copy";
      /** The stage; null: the build's context. */
      readonly from: string | null;
      readonly sources: readonly string[];
      readonly target: string;
    };

/** One stage of a Dockerfile. */
export interface Stage {
  /** As later stages know it: its name, or its number. */
  readonly name: string;
  readonly steps: readonly Step[];
  readonly environment: Readonly<Record<string, string>>;
  /** As `USER` has it; null: the image's own, root. */
  readonly user: string | null;
  readonly volumes: readonly string[];
  readonly ports: readonly string[];
  /** In exec form. */
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: {
    readonly flags: Readonly<Record<string, string>>;
    readonly command: readonly string[];
  } | null;
}

const DOCKERFILE = readFileSync(join(PROJECT, "Dockerfile"), "utf8");

const execForm = z.array(z.string()).readonly();
const exec = (text: string): readonly string[] => execForm.parse(JSON.parse(text));

/** The stages of the project's Dockerfile. Throws where one has an instruction that this does not know, or a shell form for a process. */
export function readStages(): readonly Stage[] {
  const file = DockerfileParser.parse(DOCKERFILE);
  const stages: Writable<Stage>[] = [];
  for (const instruction of file.getInstructions()) {
    if (instruction instanceof From) {
      stages.push(emptyStage(instruction.getBuildStage() ?? String(stages.length)));
      continue;
    }
    const stage = stages.at(-1);
    if (stage !== undefined) take(stage, instruction);
    else if (!(instruction instanceof Arg)) throw new Error(`${instruction.getKeyword()} comes before FROM`);
  }
  return stages;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function emptyStage(name: string): Writable<Stage> {
  const holds = { steps: [], environment: {}, volumes: [], ports: [] };
  return { name, ...holds, user: null, entrypoint: [], command: [], healthcheck: null };
}

function take(stage: Writable<Stage>, instruction: Instruction): void {
  const content = instruction.getArgumentsContent() ?? "";
  const words = instruction.getArguments().map((argument) => argument.getValue());
  const step = (taken: Step) => {
    stage.steps = [...stage.steps, taken];
  };
  if (instruction instanceof Arg || instruction instanceof Label) return;
  if (instruction instanceof Copy) {
    const from = instruction.getFromFlag()?.getValue() ?? null;
    step({ kind: "copy", from, sources: words.slice(0, -1), target: words.at(-1) ?? "" });
  } else if (instruction instanceof Workdir) step({ kind: "workdir", path: content });
  else if (instruction instanceof Run) step({ kind: "run", command: content });
  else if (instruction instanceof Env) stage.environment = { ...stage.environment, ...propertiesOf(instruction) };
  else if (instruction instanceof User) stage.user = content;
  else if (instruction instanceof Volume) stage.volumes = words;
  else if (instruction instanceof Entrypoint) stage.entrypoint = exec(content);
  else if (instruction instanceof Cmd) stage.command = exec(content);
  else if (instruction instanceof Healthcheck) {
    const flags = instruction.getFlags().map((flag) => [flag.getName(), flag.getValue() ?? ""]);
    stage.healthcheck = { flags: Object.fromEntries(flags), command: exec(content.replace(/^CMD\s+/, "")) };
  } else if (instruction.getKeyword() === "EXPOSE") stage.ports = words;
  else throw new Error(`${instruction.getKeyword()} is not known here`);
}

function propertiesOf(instruction: PropertyInstruction): Record<string, string> {
  return Object.fromEntries(instruction.getProperties().map((each) => [each.getName(), each.getValue() ?? ""]));
}
