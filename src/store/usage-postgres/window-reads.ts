import type { CausedMiss } from "../../core/index.js";
import type { GroupFilter, UsageView, WindowMisses, WindowSums } from "../api/usage-log.js";
import { ask, type Connections, type NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { StepTotals } from "../usage/step-totals.js";
import { type NoteRow, noteOf } from "../usage/usage-rows.js";
import { spanOf } from "../usage/usage-span.js";
import { type GrowingSums, SUM_COLUMNS, SUM_NAMES } from "../usage/usage-sums.js";
import type { GroupRow } from "./batch-changes.js";

/** Most notes of a window. */
const MAX_NOTES = 200;

/** The groups of a view: its tenant, model, engine and layout. */
const GROUPS_OF = `from ${SCHEMA}.usage_groups g where g.tenant = $1 and ($2::text is null or g.model = $2)
  and ($3::text is null or g.engine = $3) and ($4::text is null or g.layout = $4)`;
/** Their steps in the view's span. */
const STEPS_OF = `where s.tenant = $1 and s.step = $5 and s.start >= $6 and s.start < $7
  and s.group_id = any(array(select g.id ${GROUPS_OF}))`;

const GROUPS: NamedStatement = {
  name: "usage_view_groups",
  text: `select g.id, g.model, g.engine, g.layout ${GROUPS_OF} order by g.id`,
};
const SUMS: NamedStatement = {
  name: "usage_view_sums",
  text: `select s.start, s.group_id as "groupId", ${SUM_NAMES.map((name) => `s.${SUM_COLUMNS[name]} as "${name}"`).join()}
    from ${SCHEMA}.usage_sums s ${STEPS_OF}`,
};
const TIMES: NamedStatement = {
  name: "usage_view_times",
  text: `select s.start, s.group_id as "groupId", s.bin, s.prompts from ${SCHEMA}.usage_times s ${STEPS_OF}`,
};
const CAUSES: NamedStatement = {
  name: "usage_view_causes",
  text: `select s.cause, sum(s.prompts)::bigint as prompts, sum(s.tokens)::bigint as tokens, sum(s.money) as money
    from ${SCHEMA}.usage_causes s ${STEPS_OF} group by s.cause having sum(s.prompts) > 0`,
};
const notesWhere = (name: string, owner: string): NamedStatement => ({
  name,
  text: `select n.number, n.at, n.kind, n.label, n.model from ${SCHEMA}.usage_notes n
    where ${owner} and n.at >= $1 and n.at < $2 order by n.at desc, n.id desc limit ${MAX_NOTES}`,
});
const OWN_NOTES = notesWhere("usage_own_notes", "n.tenant = $3");
const SHARED_NOTES = notesWhere("usage_shared_notes", "n.tenant is null");

type StepRow = GrowingSums & { readonly start: number; readonly groupId: number };
interface TimeRow {
  readonly start: number;
  readonly groupId: number;
  readonly bin: number;
  readonly prompts: number;
}

/** Sums over a window, of one state of the database. Rejects with the store's faults. */
export async function readSummary(connections: Connections, view: UsageView): Promise<WindowSums> {
  const span = spanOf(view);
  const values = valuesOf(view);
  const times = [span.from, span.to];
  const [groups, sums, binned, own, shared] = await connections.readTogether((client) =>
    Promise.all([
      ask<GroupRow & object>(client, GROUPS, values.slice(0, 4)),
      ask<StepRow & object>(client, SUMS, values),
      ask<TimeRow & object>(client, TIMES, values),
      ask<NoteRow & object>(client, OWN_NOTES, [...times, view.tenant]),
      ask<NoteRow & object>(client, SHARED_NOTES, times),
    ]),
  );
  const steps = new StepTotals(groups);
  for (const row of sums) steps.add(row.start, row.groupId, row);
  for (const { start, groupId, bin, prompts } of binned) steps.time(start, groupId, bin, prompts);
  const notes = [...own.map((row) => noteOf(row, view.tenant)), ...shared.map((row) => noteOf(row, null))];
  return {
    ...span,
    ...steps.summed(),
    notes: notes.sort((a, b) => a.at - b.at || a.number - b.number).slice(-MAX_NOTES),
  };
}

/** Misses over a window. Rejects with the store's faults. */
export async function readMisses(connections: Connections, view: UsageView): Promise<WindowMisses> {
  type CauseRow = CausedMiss & { readonly prompts: number; readonly money: number };
  const causes = await connections.read<CauseRow & object>(CAUSES, valuesOf(view));
  return { ...spanOf(view), causes };
}

/** Of a model, an engine and a layout, where they are named. */
export function groupValues({ model, engine, layout }: GroupFilter): readonly (string | null)[] {
  return [model ?? null, engine ?? null, layout ?? null];
}

function valuesOf(view: UsageView): readonly unknown[] {
  const { from, to, stepMs } = spanOf(view);
  return [view.tenant, ...groupValues(view), stepMs, from, to];
}
