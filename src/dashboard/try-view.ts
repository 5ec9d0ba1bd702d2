import { fill, h } from "./dom.js";
import { figuresTable } from "./figures-table.js";
import { percent, shareOf, whole } from "./format.js";
import { InputError, readTryInput } from "./try-input.js";
import { deleteLeftOver, runTry, type TriedPrompt, type TriedWay, type TryLayout } from "./try-run.js";
import { SAMPLE_HISTORY, SAMPLE_MEMORIES } from "./try-sample.js";
import { failure, panel, type View } from "./view.js";

/** Memories and a history, composed several ways side by side. */
export const tryView: View = ({ root, signal }) => {
  void deleteLeftOver();
  const memories = h("textarea", { id: "try-memories", rows: 12, spellcheck: "false" });
  const history = h("textarea", { id: "try-history", rows: 12, spellcheck: "false" });
  const perQuestion = h("input", { id: "try-k", type: "number", min: 1, max: 50, value: 5 });
  const layouts: readonly (readonly [TryLayout, string])[] = [
    ["conversation", "One conversation, by retention"],
    ["single", "Single questions, by policy"],
  ];
  const radios = layouts.map(([value]) =>
    h("input", { type: "radio", name: "layout", value, checked: value === "conversation" }),
  );
  const run = h("button.strong", { type: "submit" }, "Compose");
  const sample = h("button", { type: "button", on: { click: () => takeSample() } }, "Take the sample");
  const status = h("p.note", { role: "status" });
  const result = h("div.results");
  const takeSample = () => {
    memories.value = SAMPLE_MEMORIES;
    history.value = SAMPLE_HISTORY;
  };
  takeSample();

  const submit = async () => {
    const layout = radios.find(({ checked }) => checked)?.value === "single" ? "single" : "conversation";
    run.disabled = true;
    try {
      const input = readTryInput(memories.value, history.value);
      const k = Math.max(1, Math.min(50, Math.round(Number(perQuestion.value)) || 5));
      fill(status, "Composing …");
      const progress = (done: number, all: number) => fill(status, `${done} of ${all} prompts composed …`);
      const tried = await runTry(input, layout, k, progress, signal);
      const count = `${tried.length * input.questions.length} prompts composed; the made-up users are deleted again.`;
      fill(status, count);
      fill(result, ...compared(tried, layout));
    } catch (error) {
      if (signal.aborted) return;
      fill(status);
      fill(result, error instanceof InputError ? h("p.notice.bad", { role: "alert" }, error.message) : failure(error));
    } finally {
      run.disabled = false;
    }
  };

  fill(
    root,
    h("h1", "Try it"),
    h(
      "p.lead",
      "Paste memories and a history, or take the sample. Every question is composed by this service in several ways, and you see how much of each prompt an engine's prefix cache can reuse.",
    ),
    h(
      "form.panel",
      {
        on: {
          submit: (event) => {
            event.preventDefault();
            void submit();
          },
        },
      },
      h(
        "div.halves",
        h("div.field", h("label", { for: "try-memories" }, "Memories, one on each line, or JSON"), memories),
        h(
          "div.field",
          h("label", { for: "try-history" }, "History: lines that begin with system:, user: or assistant:, or JSON"),
          history,
        ),
      ),
      h(
        "div.row",
        h(
          "fieldset.choice",
          h("legend.unseen", "Layout"),
          layouts.map(([, title], at) => h("label", radios[at], title)),
        ),
        h("label.inline", { for: "try-k" }, "Memories per question", perQuestion),
        run,
        sample,
      ),
      h(
        "p.note",
        "The memories of a question are those that share most words with it: a stand-in for your search. Nothing is kept: each way has a user made up for it, who is deleted again.",
      ),
    ),
    status,
    result,
  );
};

function compared(tried: readonly TriedWay[], layout: TryLayout): readonly HTMLElement[] {
  const turns = tried[0]?.prompts.length ?? 0;
  const totals = tried.map(({ way, prompts }) => ({
    way,
    prompts,
    total: sum(prompts.map(({ total }) => total)),
    cached: sum(prompts.map(({ expectedCached }) => expectedCached)),
  }));
  const least = Math.min(...totals.map(({ total, cached }) => total - cached));
  const most = Math.max(...tried.flatMap(({ prompts }) => prompts.map(({ total }) => total)));
  const panes = h("div.panes");
  const choose = (turn: number) => {
    for (const [at, button] of buttons.entries()) button.setAttribute("aria-pressed", String(at === turn));
    fill(panes, ...tried.map((one) => pane(one, turn)));
  };
  const buttons = Array.from({ length: turns }, (_, turn) =>
    h("button", { type: "button", on: { click: () => choose(turn) } }, String(turn + 1)),
  );
  choose(turns - 1);
  const { element: table } = figuresTable(
    `All ${turns} prompts together, in tokens`,
    [
      {
        title: layout === "conversation" ? "Retention" : "Policy",
        isName: true,
        cell: ({ way }) => [way.name, h("span.sub", way.note)],
      },
      { title: "Prompt by prompt", cell: ({ prompts }) => turnBars(prompts, most) },
      { title: "Sent", isNumber: true, cell: ({ total }) => whole(total) },
      { title: "Expected cached", isNumber: true, cell: ({ cached }) => whole(cached) },
      {
        title: "To compute",
        isNumber: true,
        cell: ({ total, cached }) => [
          h("strong", whole(total - cached)),
          total - cached === least ? h("span.tag", "least") : null,
        ],
      },
      { title: "Cached share", isNumber: true, cell: ({ total, cached }) => percent(shareOf(cached, total)) },
    ],
    totals,
  );
  return [
    panel("What each way costs", `All ${turns} prompts together, in tokens.`, table, legend()),
    panel(
      "The prompts side by side",
      "Shaded: the prefix that an earlier prompt of the same way began with, byte for byte.",
      h("div.row.turns", { role: "group", "aria-label": "Question" }, h("span", "Question"), buttons),
      panes,
    ),
  ];
}

function turnBars(prompts: readonly TriedPrompt[], most: number): HTMLElement {
  const said = prompts.map(({ total, expectedCached }) => `${total - expectedCached} of ${total}`).join(", ");
  return h(
    "div.columns",
    { role: "img", "aria-label": `To compute of all tokens, prompt by prompt: ${said}` },
    prompts.map(({ total, expectedCached }) =>
      h(
        "span.column",
        { title: `${whole(expectedCached)} cached, ${whole(total - expectedCached)} to compute` },
        h("span.part.fresh", { css: { height: `${((total - expectedCached) / most) * 100}%` } }),
        h("span.part.cached", { css: { height: `${(expectedCached / most) * 100}%` } }),
      ),
    ),
  );
}

/** What the colours of cached and computed tokens mean. */
function legend(): HTMLElement {
  return h("p.legend", h("span.key.cached", "expected in the engine's cache"), h("span.key.fresh", "to compute"));
}

function pane({ way, prompts }: TriedWay, turn: number): HTMLElement {
  const prompt = prompts[turn];
  if (prompt === undefined) return h("article.pane");
  const { messages, total, expectedCached, shared } = prompt;
  return h(
    "article.pane",
    { "aria-label": way.name },
    h("h3", way.name),
    h(
      "p.note",
      `${whole(total)} tokens: ${whole(expectedCached)} cached, `,
      h("strong", `${whole(total - expectedCached)} to compute`),
    ),
    h(
      "div.prompt",
      { tabindex: 0, role: "region", "aria-label": `Prompt, ${way.name}` },
      messages.map(({ role, content }, at) => {
        const cut = at < shared.messages ? content.length : at === shared.messages ? shared.characters : 0;
        return h(
          "div.message",
          h("span.role", role),
          h("pre", cut > 0 ? h("mark.shared", content.slice(0, cut)) : null, content.slice(cut)),
        );
      }),
    ),
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
