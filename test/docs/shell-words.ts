/** A simple command of a shell script: what it sets for itself, its name and its arguments. */
export interface ShellCommand {
  /** Names and values before the command, or of `export`. */
  readonly variables: readonly { readonly name: string; readonly value: string }[];
  /** Empty where only variables are set. */
  readonly words: readonly string[];
}

/**
 * Takes a script apart into its simple commands, as far as the samples need it: quotes, comments, line continuations, and whatever
 * separates commands. Words keep what is in their quotes, without the quotes.
 */
export function shellCommands(script: string): readonly ShellCommand[] {
  const commands: string[][] = [[]];
  let word: string | null = null;
  const endWord = () => {
    if (word !== null) commands.at(-1)?.push(word);
    word = null;
  };
  const text = script.replaceAll("\\\n", " ");
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? "";
    if (character === "'" || character === '"') {
      const end = text.indexOf(character, at + 1);
      if (end < 0) throw new Error(`a quote is not closed: ${text.slice(at, at + 40)}`);
      word = (word ?? "") + text.slice(at + 1, end);
      at = end;
    } else if (character === "#" && word === null) {
      at = text.indexOf("\n", at) - 1;
      if (at < 0) break;
    } else if (">".includes(character)) {
      endWord();
      at += (/^>{1,2} *\S+/.exec(text.slice(at))?.[0].length ?? 1) - 1;
    } else if (/[|&;\n(){}]/.test(character)) {
      endWord();
      commands.push([]);
    } else if (/\s/.test(character)) endWord();
    else word = (word ?? "") + character;
  }
  endWord();
  return commands.filter((words) => words.length > 0).map(commandOf);
}

function commandOf(given: readonly string[]): ShellCommand {
  const words = given[0] === "export" ? given.slice(1) : given;
  const first = words.findIndex((word) => !/^\w+=/.test(word));
  const count = first < 0 ? words.length : first;
  const variables = words.slice(0, count).map((word) => {
    const [name = ""] = word.split("=", 1);
    return { name, value: word.slice(name.length + 1) };
  });
  return { variables, words: words.slice(count) };
}
