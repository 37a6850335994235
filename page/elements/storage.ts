// Owns: what the browser keeps for the page: for ever, or in a tab. It may let pages store nothing, or have no room.

type Storages = 'localStorage' | 'sessionStorage';

/** @returns '' if nothing is kept. */
export function kept(storage: Storages, name: string): string {
  try {
    return globalThis[storage].getItem(name) ?? '';
  } catch {
    return '';
  }
}

/** @param text '' keeps nothing. */
export function keep(storage: Storages, name: string, text: string): void {
  try {
    if (text === '') globalThis[storage].removeItem(name);
    else globalThis[storage].setItem(name, text);
  } catch {
    // The page works without it.
  }
}
