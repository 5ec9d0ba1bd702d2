/*
 * dashboard: the page in the browser. Enters: JSON of the public HTTP API. Leaves: elements.
 * It knows other rooms by their types alone, and is bundled by `npm run build` into one script. All text goes in as text nodes: memory texts,
 * ids and names are anybody's, and the page's policy lets no HTML be made of a string (`require-trusted-types-for`).
 */

/** What an element may contain: text is put in as text; nothing of null, undefined and false. */
export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Styles = Readonly<Record<string, string>>;
type Listeners = { readonly [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

/** Attributes by name: `true` sets an empty one, `false`, null and undefined none. */
export interface Props {
  /** Custom properties and styles, set one by one: the page's policy allows no `style` attribute. */
  readonly css?: Styles;
  readonly on?: Listeners;
  readonly [attribute: string]: string | number | boolean | null | undefined | Styles | Listeners;
}

/** Makes an element: `h("a.id", { href }, "text")`. Classes follow the tag's name; the attributes may be left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K | `${K}.${string}`,
  first?: Props | Child,
  ...others: readonly Child[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag as K);
  element.classList.add(...classes);
  const hasProps = isProps(first);
  const { css = {}, on = {}, ...attributes } = hasProps ? first : {};
  for (const [property, value] of Object.entries(css)) element.style.setProperty(property, value);
  for (const [type, listener] of Object.entries(on)) element.addEventListener(type, listener as EventListener);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(attribute, value === true ? "" : String(value));
  }
  fill(element, hasProps ? null : first, others);
  return element;
}

function isProps(given: Props | Child): given is Props {
  return typeof given === "object" && given !== null && !(given instanceof Node) && !Array.isArray(given);
}

/** Replaces what an element contains. */
export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(...children.flatMap(nodesOf));
}

function nodesOf(child: Child): readonly (Node | string)[] {
  if (child === null || child === undefined || child === false) return [];
  if (child instanceof Node) return [child];
  return typeof child === "object" ? child.flatMap(nodesOf) : [String(child)];
}

let ids = 0;

/** An id that no other element has. */
export function newId(what: string): string {
  ids += 1;
  return `${what}-${ids}`;
}
