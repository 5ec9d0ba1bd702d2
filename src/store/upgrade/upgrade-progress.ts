import type { SchemaProgress } from "../database/migrations.js";

/** What is told of an upgrade. Times are milliseconds since the file was opened. */
export type UpgradeEvent =
  /** The schema is about to be brought up to date. */
  | { readonly kind: "schema"; readonly schema: SchemaProgress }
  /** So many scopes are in the journal, of those that were in the tables when it began. */
  | { readonly kind: "moving"; readonly scopes: number; readonly of: number; readonly ms: number }
  /** All is done, with so many scopes moved. */
  | { readonly kind: "done"; readonly scopes: number; readonly ms: number };

export type UpgradeListener = (event: UpgradeEvent) => void;

/** Milliseconds between two events while scopes are moved. */
const BETWEEN_MS = 5_000;

/** Tells how far an upgrade is: at its beginning, now and then, and at its end. Of a file that is up to date it tells nothing. */
export class UpgradeProgress {
  readonly #began: number;
  #last: number;
  #of = 0;
  #moved = 0;
  #hasBegun = false;

  /** @param now milliseconds */
  constructor(
    private readonly tell: UpgradeListener,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#began = now();
    this.#last = this.#began;
  }

  /** May be called again for one opening, which is retried where the file is locked. */
  schemaBegins(schema: SchemaProgress): void {
    if (!this.#hasBegun) this.tell({ kind: "schema", schema });
    this.#hasBegun = true;
  }

  scopesBegin(of: number): void {
    this.#of = of;
    this.#hasBegun = true;
    this.#tellMoving();
  }

  /** A scope is in the journal. */
  moved(): void {
    this.#moved++;
    this.working();
  }

  /** To be called often in between. */
  working(): void {
    if (this.now() - this.#last >= BETWEEN_MS) this.#tellMoving();
  }

  done(): void {
    if (this.#hasBegun) this.tell({ kind: "done", scopes: this.#moved, ms: Math.round(this.now() - this.#began) });
  }

  #tellMoving(): void {
    this.#last = this.now();
    this.tell({ kind: "moving", scopes: this.#moved, of: this.#of, ms: Math.round(this.#last - this.#began) });
  }
}
