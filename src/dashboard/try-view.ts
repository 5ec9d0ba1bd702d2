import { fill, h } from "./dom.js";
import { percent, shareOf, whole } from "./format.js";
import { InputError, readTryInput } from "./try-input.js";
import { deleteLeftOver, runTry, type TriedPrompt, type TriedWay, type TryLayout } from "./try-run.js";
import { SAMPLE_HISTORY, SAMPLE_MEMORIES } from "./try-sample.js";
import { failure, type View } from "./view.js";

/** Memories and a history, composed several ways side by side. */
export const tryView: View = ({ root, signal }) => {
  void deleteLeftOver();
  const memories = h("textarea", { attrs: { id: "try-memories", rows: 12, spellcheck: "false" } });
  const history = h("textarea", { attrs: { id: "try-history", rows: 12, spellcheck: "false" } });
  const perQuestion = h("input", { attrs: { id: "try-k", type: "number", min: 1, max: 50, value: 5 } });
  const layouts: readonly (readonly [TryLayout, string])[] = [
    ["conversation", "One conversation, by retention"],
    ["single", "Single questions, by policy"],
  ];
  const radios = layouts.map(([value]) =>
    h("input", { attrs: { type: "radio", name: "layout", value, checked: value === "conversation" } }),
  );
  const run = h("button", { class: "strong", attrs: { type: "submit" } }, "Compose");
  const sample = h("button", { attrs: { type: "button" }, on: { click: () => takeSample() } }, "Take the sample");
  const status = h("p", { class: "note", attrs: { role: "status" } });
  const result = h("div", { class: "results" });
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
      fill(
        result,
        error instanceof InputError
          ? h("p", { class: "notice bad", attrs: { role: "alert" } }, error.message)
          : failure(error),
      );
    } finally {
      run.disabled = false;
    }
  };

  fill(
    root,
    h("h1", null, "Try it"),
    h(
      "p",
      { class: "lead" },
      "Paste memories and a history, or take the sample. Every question is composed by this service in several ways, and you see how much of each prompt an engine's prefix cache can reuse.",
    ),
    h(
      "form",
      {
        class: "panel",
        on: {
          submit: (event) => {
            event.preventDefault();
            void submit();
          },
        },
      },
      h(
        "div",
        { class: "halves" },
        h(
          "div",
          { class: "field" },
          h("label", { attrs: { for: "try-memories" } }, "Memories, one on each line, or JSON"),
          memories,
        ),
        h(
          "div",
          { class: "field" },
          h(
            "label",
            { attrs: { for: "try-history" } },
            "History: lines that begin with system:, user: or assistant:, or JSON",
          ),
          history,
        ),
      ),
      h(
        "div",
        { class: "row" },
        h(
          "fieldset",
          { class: "choice" },
          h("legend", { class: "unseen" }, "Layout"),
          ...layouts.map(([, title], at) => h("label", null, radios[at], title)),
        ),
        h("label", { class: "inline", attrs: { for: "try-k" } }, "Memories per question", perQuestion),
        run,
        sample,
      ),
      h(
        "p",
        { class: "note" },
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
  const panes = h("div", { class: "panes" });
  const choose = (turn: number) => {
    for (const [at, button] of buttons.entries()) button.setAttribute("aria-pressed", String(at === turn));
    fill(panes, ...tried.map((one) => pane(one, turn)));
  };
  const buttons = Array.from({ length: turns }, (_, turn) =>
    h("button", { attrs: { type: "button" }, on: { click: () => choose(turn) } }, String(turn + 1)),
  );
  choose(turns - 1);
  const table = h(
    "table",
    { class: "figures" },
    h("caption", null, `All ${turns} prompts together, in tokens`),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { attrs: { scope: "col" } }, layout === "conversation" ? "Retention" : "Policy"),
        h("th", { attrs: { scope: "col" } }, "Prompt by prompt"),
        ...["Sent", "Expected cached", "To compute", "Cached share"].map((name) =>
          h("th", { class: "number", attrs: { scope: "col" } }, name),
        ),
      ),
    ),
    h(
      "tbody",
      null,
      ...totals.map(({ way, prompts, total, cached }) =>
        h(
          "tr",
          { class: total - cached === least ? "best" : "" },
          h("th", { attrs: { scope: "row" } }, way.name, h("span", { class: "sub" }, way.note)),
          h("td", null, turnBars(prompts, most)),
          h("td", { class: "number" }, whole(total)),
          h("td", { class: "number" }, whole(cached)),
          h(
            "td",
            { class: "number" },
            h("strong", null, whole(total - cached)),
            total - cached === least ? h("span", { class: "tag" }, "least") : null,
          ),
          h("td", { class: "number" }, percent(shareOf(cached, total))),
        ),
      ),
    ),
  );
  return [
    h(
      "section",
      { class: "panel" },
      h("h2", null, "What each way costs"),
      h("div", { class: "scroll", attrs: { tabindex: 0, role: "region", "aria-label": "What each way costs" } }, table),
      legend(),
    ),
    h(
      "section",
      { class: "panel" },
      h("h2", null, "The prompts side by side"),
      h("p", { class: "note" }, "Shaded: the prefix that an earlier prompt of the same way began with, byte for byte."),
      h(
        "div",
        { class: "row turns", attrs: { role: "group", "aria-label": "Question" } },
        h("span", null, "Question"),
        ...buttons,
      ),
      panes,
    ),
  ];
}

function turnBars(prompts: readonly TriedPrompt[], most: number): HTMLElement {
  const said = prompts.map(({ total, expectedCached }) => `${total - expectedCached} of ${total}`).join(", ");
  return h(
    "div",
    { class: "columns", attrs: { role: "img", "aria-label": `To compute of all tokens, prompt by prompt: ${said}` } },
    ...prompts.map(({ total, expectedCached }) =>
      h(
        "span",
        {
          class: "column",
          attrs: { title: `${whole(expectedCached)} cached, ${whole(total - expectedCached)} to compute` },
        },
        h("span", { class: "part fresh", css: { height: `${((total - expectedCached) / most) * 100}%` } }),
        h("span", { class: "part cached", css: { height: `${(expectedCached / most) * 100}%` } }),
      ),
    ),
  );
}

/** What the colours of cached and computed tokens mean. */
function legend(): HTMLElement {
  return h(
    "p",
    { class: "legend" },
    h("span", { class: "key cached" }, "expected in the engine's cache"),
    h("span", { class: "key fresh" }, "to compute"),
  );
}

function pane({ way, prompts }: TriedWay, turn: number): HTMLElement {
  const prompt = prompts[turn];
  if (prompt === undefined) return h("article", { class: "pane" });
  const { messages, total, expectedCached, shared } = prompt;
  return h(
    "article",
    { class: "pane", attrs: { "aria-label": way.name } },
    h("h3", null, way.name),
    h(
      "p",
      { class: "note" },
      `${whole(total)} tokens: ${whole(expectedCached)} cached, `,
      h("strong", null, `${whole(total - expectedCached)} to compute`),
    ),
    h(
      "div",
      { class: "prompt", attrs: { tabindex: 0, role: "region", "aria-label": `Prompt, ${way.name}` } },
      ...messages.map(({ role, content }, at) => {
        const cut = at < shared.messages ? content.length : at === shared.messages ? shared.characters : 0;
        return h(
          "div",
          { class: "message" },
          h("span", { class: "role" }, role),
          h("pre", null, cut > 0 ? h("mark", { class: "shared" }, content.slice(0, cut)) : null, content.slice(cut)),
        );
      }),
    ),
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
