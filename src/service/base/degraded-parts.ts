/** What memstem needs of others, and goes on without. */
export const PARTS = ["memory_search", "memory_writes", "engine", "store", "alert_webhook"] as const;
export type PartName = (typeof PARTS)[number];

/** A part that failed when it was last asked. */
export interface DegradedPart {
  readonly part: PartName;
  /** Why, for everybody to see: no text of others, no address. */
  readonly reason: string;
  /** Since when it fails for this reason, in milliseconds since the epoch. */
  readonly since: number;
}

/** A part's failure, as the log has it. */
export interface PartFailure {
  readonly part: PartName;
  /** With what the other side said, without secrets and texts of memories. */
  readonly cause: string;
  /** Whether the part works, and refused this request alone. */
  readonly isOfRequest: boolean;
}

/** Observes failing parts. */
export interface PartObserver {
  failed(failure: PartFailure): void;
  recovered(part: PartName): void;
}

/** Most refusals of single requests that are remembered as reported. */
const MOST_REFUSALS = 200;

/**
 * Which of the parts fail, of all tenants. Reported to observers once, again when the cause changes, and when the part works again; a refusal of
 * single requests is reported once for each cause, and does not count as a failing part.
 */
export class DegradedParts {
  readonly #failing = new Map<PartName, DegradedPart & { readonly cause: string }>();
  readonly #refused = new Set<string>();

  /** @param now milliseconds since the epoch */
  constructor(
    private readonly observer: PartObserver,
    private readonly now: () => number,
  ) {}

  get list(): readonly DegradedPart[] {
    return PARTS.flatMap((name) => {
      const failing = this.#failing.get(name);
      return failing === undefined ? [] : [{ part: name, reason: failing.reason, since: failing.since }];
    });
  }

  failed(part: PartName, reason: string, cause = reason): void {
    if (this.#failing.get(part)?.cause === cause) return;
    this.#failing.set(part, { part, reason, cause, since: this.now() });
    this.observer.failed({ part, cause, isOfRequest: false });
  }

  /** The part works, and refused a request. */
  refused(part: PartName, cause: string): void {
    const refusal = `${part} ${cause}`;
    if (this.#refused.has(refusal)) return;
    const [oldest] = this.#refused;
    if (this.#refused.size >= MOST_REFUSALS && oldest !== undefined) this.#refused.delete(oldest);
    this.#refused.add(refusal);
    this.observer.failed({ part, cause, isOfRequest: true });
  }

  worked(part: PartName): void {
    if (this.#failing.delete(part)) this.observer.recovered(part);
  }
}
