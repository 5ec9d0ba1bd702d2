/*
 * dashboard: the page in the browser. Enters: JSON of the public HTTP API. Leaves: elements.
 * It knows other rooms by their types alone, and is bundled by `npm run build` into one script. All text goes in as text nodes: memory texts,
 * ids and names are anybody's, and the page's policy lets no HTML be made of a string (`require-trusted-types-for`).
 */

/** What an element may contain: text is put in as text. */
export type Child = Node | string | number | null | undefined | false;

/** Attributes and listeners of an element. */
export interface Props {
  readonly class?: string;
  /** Custom properties and styles, set one by one: the page's policy allows no `style` attribute. */
  readonly css?: Readonly<Record<string, string>>;
  readonly on?: { readonly [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
  /** Attributes by name: `true` sets an empty one, `false`, null and undefined none. */
  readonly attrs?: Readonly<Record<string, string | number | boolean | null | undefined>>;
}

/** Makes an element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props | null = null,
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (props?.class !== undefined) element.className = props.class;
  for (const [name, value] of Object.entries(props?.css ?? {})) element.style.setProperty(name, value);
  for (const [name, value] of Object.entries(props?.attrs ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, listener] of Object.entries(props?.on ?? {})) {
    element.addEventListener(name, listener as EventListener);
  }
  fill(element, ...children);
  return element;
}

/** Replaces what an element contains. */
export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(...children.flatMap(nodeOf));
}

function nodeOf(child: Child): readonly (Node | string)[] {
  if (child === null || child === undefined || child === false) return [];
  return [typeof child === "number" ? String(child) : child];
}

let ids = 0;

/** An id that no other element has. */
export function newId(what: string): string {
  ids += 1;
  return `${what}-${ids}`;
}
