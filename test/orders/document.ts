// Owns: just enough of a document for the parts of the page that change books to run without a browser: elements that are
// found by their selector, keep their latest listener, and are shown or not.

class Element {
  open = false;
  returnValue = '';
  textContent = '';
  readonly children: readonly unknown[] = [];
  readonly matches = () => false;
  readonly contains = () => false;
  readonly append = () => {};
  readonly remove = () => {};
  readonly replaceChildren = () => {};
  readonly setAttribute = () => {};
  readonly #listeners = new Map<string, (event: object) => void>();

  addEventListener(type: string, listener: (event: object) => void): void {
    this.#listeners.set(type, listener);
  }

  showModal(): void {
    this.open = true;
  }

  /** @param value of the button that closes it. */
  close(value: string): void {
    if (!this.open) return;
    this.open = false;
    this.returnValue = value;
    this.#listeners.get('close')?.({});
  }
}

const elements = new Map<string, Element>();
const listeners = new Map<string, ((event: Event) => void)[]>();
const stored = new Map<string, string>();

/** The element of a selector. */
export function element(selector: string): Element {
  const found = elements.get(selector) ?? new Element();
  elements.set(selector, found);
  return found;
}

/** For the next page. @param isReload whether it is in the same tab. */
export function forgetPage(isReload = false): void {
  listeners.clear();
  if (!isReload) stored.clear();
}

/** @returns whether nobody prevents what follows from the event. */
export function dispatch(type: string): boolean {
  const event = new Event(type, { cancelable: true });
  for (const listener of listeners.get(type) ?? []) listener(event);
  return !event.defaultPrevented;
}

/** Gives this process a document; modules of the page may be imported afterwards. */
export function provideDocument(): void {
  const sessionStorage = {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, text: string) => stored.set(name, text),
  };
  Object.defineProperty(globalThis, 'sessionStorage', { value: sessionStorage }); // Node.js has another one
  Object.assign(globalThis, {
    location: new URL('http://127.0.0.1:8082/'),
    document: {
      activeElement: null,
      querySelector: (selector: string) =>
        selector === 'dialog[open]'
          ? ([...elements.values()].find(({ open }) => open) ?? null)
          : element(selector),
      createElement: () => new Element(),
      createElementNS: () => new Element(),
    },
    HTMLInputElement: class {},
    HTMLElement: class {},
    addEventListener: (type: string, listener: (event: Event) => void) =>
      listeners.set(type, [...(listeners.get(type) ?? []), listener]),
  });
}
