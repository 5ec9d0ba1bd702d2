import { h, html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { percent, shareOf, whole } from "./format.js";
import { coloured } from "./prompt-bar.js";
import { InputError, readTryInput } from "./try-input.js";
import { runTry, type TriedPrompt, type TriedWay } from "./try-run.js";
import { SAMPLE_HISTORY, SAMPLE_MEMORIES } from "./try-sample.js";
import { type Column, failure, figuresTable, loading, panel, scrolling } from "./view.js";

type Outcome = { readonly tried: readonly TriedWay[]; readonly error?: never } | { readonly error: unknown };

/** Memories and a history, composed several ways side by side. */
export const tryView = loading(
  async () => ({}),
  () => {
    const [memories, setMemories] = useState(SAMPLE_MEMORIES);
    const [history, setHistory] = useState(SAMPLE_HISTORY);
    const [perQuestion, setPerQuestion] = useState("5");
    const [status, setStatus] = useState<string | null>(null);
    const [isRunning, setRunning] = useState(false);
    const [outcome, setOutcome] = useState<Outcome | null>(null);
    const [ending] = useState(() => new AbortController());
    useEffect(() => {
      addEventListener("pagehide", () => ending.abort(), { signal: ending.signal });
      return () => ending.abort();
    }, []);
    const takeSample = () => {
      setMemories(SAMPLE_MEMORIES);
      setHistory(SAMPLE_HISTORY);
    };
    const submit = async (event: Event) => {
      event.preventDefault();
      setRunning(true);
      try {
        const input = readTryInput(memories, history);
        const k = Math.max(1, Math.min(50, Math.round(Number(perQuestion)) || 5));
        setStatus("Composing …");
        const progress = (done: number, all: number) => setStatus(`${done} of ${all} prompts composed …`);
        const tried = await runTry(input, k, progress, ending.signal);
        setStatus(`${tried.length * input.questions.length} prompts composed; the made-up users are deleted again.`);
        setOutcome({ tried });
      } catch (error) {
        if (ending.signal.aborted) return;
        setStatus(null);
        setOutcome({ error });
      } finally {
        setRunning(false);
      }
    };
    const type = ({ currentTarget }: { currentTarget: HTMLInputElement }) => setPerQuestion(currentTarget.value);
    return html`
      <h1>How much of your prompts could be cached?</h1>
      <p class="lead">
        Paste memories and a history, or take the sample. Every question is composed by this service in several ways, and you see how much of each prompt an engine's prefix cache can reuse.
      </p>
      <form class="panel" onSubmit=${submit}>
        <div class="halves">
          ${textField("try-memories", "Memories, one on each line", memories, setMemories)}
          ${textField("try-history", "History: lines that begin with system:, user: or assistant:", history, setHistory)}
        </div>
        <div class="row">
          <label class="inline">
            Memories per question <input type="number" min="1" max="50" value=${perQuestion} onInput=${type} />
          </label>
          <button class="strong" type="submit" disabled=${isRunning}>Compose</button>
          <button type="button" onClick=${takeSample}>Take the sample</button>
        </div>
        <p class="note">
          The memories of a question are those that share most words with it: a stand-in for your search. Nothing is kept: each way has a user made up for it, who is deleted again.
        </p>
      </form>
      <p class="note" role="status">${status}</p>
      <div class="results">${outcome !== null && result(outcome)}</div>`;
  },
);

function textField(id: string, label: string, value: string, set: (text: string) => void): VNode {
  const type = ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => set(currentTarget.value);
  return html`<div class="field">
    <label for=${id}>${label}</label><textarea id=${id} rows="12" spellcheck=${false} value=${value} onInput=${type}></textarea>
  </div>`;
}

function result(outcome: Outcome): ComponentChildren {
  const { error } = outcome;
  if (!("error" in outcome)) return h(Compared, outcome);
  return error instanceof InputError ? html`<p class="notice bad" role="alert">${error.message}</p>` : failure(error);
}

function Compared({ tried }: { readonly tried: readonly TriedWay[] }): VNode {
  const turns = tried[0]?.prompts.length ?? 0;
  const [chosen, choose] = useState<number | null>(null);
  const turn = Math.min(chosen ?? turns, turns - 1);
  const totals = tried.map(({ way, prompts }) => {
    const sum = (of: (prompt: TriedPrompt) => number) => prompts.reduce((all, prompt) => all + of(prompt), 0);
    return { way, prompts, total: sum(({ total }) => total), cached: sum(({ expectedCached }) => expectedCached) };
  });
  const least = Math.min(...totals.map(({ total, cached }) => total - cached));
  const most = Math.max(...tried.flatMap(({ prompts }) => prompts.map(({ total }) => total)));
  const columns: readonly Column<(typeof totals)[number]>[] = [
    {
      title: "Retention",
      isName: true,
      cell: ({ way }) => html`${way.name}<span class="sub">${way.note}</span>`,
    },
    { title: "Prompt by prompt", cell: ({ prompts }) => turnBars(prompts, most) },
    { title: "Sent", isNumber: true, cell: ({ total }) => whole(total) },
    { title: "Expected cached", isNumber: true, cell: ({ cached }) => whole(cached) },
    {
      title: "To compute",
      isNumber: true,
      cell: ({ total, cached }) => html`<strong>${whole(total - cached)}</strong>
        ${total - cached === least && html`<span class="tag">least</span>`}`,
    },
    { title: "Cached share", isNumber: true, cell: ({ total, cached }) => percent(shareOf(cached, total)) },
  ];
  const together = `All ${turns} prompts together, in tokens`;
  const buttons = Array.from({ length: turns }, (_, at) => {
    return html`<button type="button" aria-pressed=${at === turn} onClick=${() => choose(at)}>${at + 1}</button>`;
  });
  return html`
    ${panel(
      "What each way costs",
      `${together}.`,
      figuresTable({ caption: together, columns, rows: totals }),
      html`<p class="legend">
        <span class="key" style=${coloured("cached")}>expected in the engine's cache</span>
        <span class="key" style=${coloured("fresh")}>to compute</span>
      </p>`,
    )}
    ${panel(
      "The prompts side by side",
      "Shaded: the prefix that an earlier prompt of the same way began with, byte for byte.",
      html`<div class="row turns" role="group" aria-label="Question"><span>Question</span>${buttons}</div>
        <div class="panes">${tried.map(({ way, prompts }) => pane(way.name, prompts[turn]))}</div>`,
    )}`;
}

function turnBars(prompts: readonly TriedPrompt[], most: number): VNode {
  const said = prompts.map(({ total, expectedCached }) => `${total - expectedCached} of ${total}`).join(", ");
  const bar = (kind: "fresh" | "cached", tokens: number) =>
    html`<span class="part" style=${{ ...coloured(kind), height: `${(tokens / most) * 100}%` }}></span>`;
  const columns = prompts.map(({ total, expectedCached: cached }) => {
    const [fresh, title] = [total - cached, `${whole(cached)} cached, ${whole(total - cached)} to compute`];
    return html`<span class="column" title=${title}>
      ${bar("fresh", fresh)}${bar("cached", cached)}
    </span>`;
  });
  return html`<div class="columns" role="img" aria-label="To compute of all tokens, prompt by prompt: ${said}">${columns}</div>`;
}

function pane(name: string, prompt: TriedPrompt | undefined): VNode | undefined {
  if (prompt === undefined) return undefined;
  const { messages, total, expectedCached: cached, shared } = prompt;
  const shown = messages.map(({ role, content }, at) => {
    const cut = at < shared.messages ? content.length : at === shared.messages ? shared.characters : 0;
    const prefix = cut > 0 && html`<mark class="shared">${content.slice(0, cut)}</mark>`;
    return html`<div class="message"><span class="role">${role}</span><pre>${prefix}${content.slice(cut)}</pre></div>`;
  });
  return html`<article class="pane" aria-label=${name}>
    <h3>${name}</h3>
    <p class="note">${whole(total)} tokens: ${whole(cached)} cached, <strong>${whole(total - cached)} to compute</strong></p>
    ${scrolling(`Prompt, ${name}`, shown, "prompt")}
  </article>`;
}
