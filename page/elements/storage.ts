// Owns: what the browser keeps for the page: for ever, or in a tab, by the path of the page, since other paths of the origin may have
// other catalogues. It may let pages store nothing, or have no room.

type Storages = 'localStorage' | 'sessionStorage';

const atPath = (name: string) => `${name} ${new URL('.', location.href).pathname}`;

/** @returns '' if nothing is kept. */
export function kept(storage: Storages, name: string): string {
  try {
    return globalThis[storage].getItem(atPath(name)) ?? '';
  } catch {
    return '';
  }
}

/** @param text '' keeps nothing. */
export function keep(storage: Storages, name: string, text: string): void {
  try {
    if (text === '') globalThis[storage].removeItem(atPath(name));
    else globalThis[storage].setItem(atPath(name), text);
  } catch {
    // The page works without it.
  }
}
