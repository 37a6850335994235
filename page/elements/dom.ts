// Owns: elements: finding those of index.html, and making others. Text is only ever set as text, never as HTML.

/** @throws Error if index.html has no such element. */
export function find<Found extends Element = HTMLElement>(
  selector: string,
  root: ParentNode = document,
): Found {
  const found = root.querySelector<Found>(selector);
  if (found === null) throw new Error(`index.html has no ${selector}`);
  return found;
}

/** A dialog that closes gives the focus back; Chromium then lets nobody type until the field is focused again. */
export function refocus(): void {
  const field = document.activeElement;
  if (field === document.body || field?.checkVisibility() === false) find('#words').focus(); // what opened it is gone
  if (!(field instanceof HTMLInputElement)) return;
  field.blur();
  field.focus();
}

/** Opens a dialog. @returns the value of the button that closes it; '' if none does. */
export async function ask(dialog: HTMLDialogElement): Promise<string> {
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue;
}

type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: Event) => void)>>;

/**
 * Makes an element.
 * @param attributes by name: `true` is an attribute without a value, `false` and undefined none, a function the
 * listener of the event of this name.
 */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly (Node | string | undefined)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

export function button(text: string, click: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return make('button', { type: 'button', click, ...attributes }, text);
}

/** Says what is wrong; screen readers speak it at once. */
export function warning(text: string): HTMLElement {
  return make('p', { class: 'bad', role: 'alert' }, text);
}

/** Replaces what an element has. The focus stays on the element with the same id. */
export function redraw(element: Element, ...parts: readonly Node[]): void {
  const focused = document.activeElement?.id;
  element.replaceChildren(...parts);
  if (focused) document.getElementById(focused)?.focus();
}

/** @param heads of the columns: texts, or what stands in their cells. */
export function table(heads: readonly (string | readonly Node[])[], body: HTMLElement): HTMLElement {
  const cells = heads.map((head) => make('th', { scope: 'col' }, ...[head].flat()));
  return make('table', {}, make('thead', {}, make('tr', {}, ...cells)), body);
}

/** @param texts by values. */
export function choice(
  attributes: Attributes,
  texts: Readonly<Record<string, string>>,
  onChoice: (value: string) => void,
): HTMLSelectElement {
  const options = Object.entries(texts).map(([value, text]) => make('option', { value }, text));
  const select = make('select', { ...attributes, change: () => onChoice(select.value) }, ...options);
  return select;
}

const SVG = 'http://www.w3.org/2000/svg';

/** An icon of index.html, by the name of its symbol. Screen readers pass over it. */
export function icon(name: string): SVGElement {
  const image = document.createElementNS(SVG, 'svg');
  image.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `#${name}`);
  image.append(use);
  return image;
}
