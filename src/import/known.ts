// Owns: what is known of an import, in its process or in the store.

import type { KeptImport } from '../books/kept-imports.ts';
import { emptyReport, type ImportReport } from './summary.ts';

export type ImportKnown = Pick<KeptImport, 'number' | 'state' | 'books'> & { readonly report: ImportReport };

/**
 * Whether a process has its file, and works on it or waits for a request; or it has ended.
 * @param lost milliseconds after which a process that was not seen is gone.
 */
export function isHeld({ state, idle }: KeptImport, lost: number): boolean {
  return state === 'stored' || state === 'undone' || (state !== 'stopped' && idle < lost);
}

/** @param found in its process, which has no `idle`, or in the store. */
export function knownOf(found: ImportKnown | KeptImport, lost: number): ImportKnown {
  const { number, state, books } = found;
  const isWanted = 'wanted' in found && state === 'checked' && found.wanted !== null;
  const isOpen = state === 'open' || isWanted;
  const isLost = isOpen && 'idle' in found && found.idle >= lost;
  const report = (found.report ?? emptyReport(null, false, {}, 0)) as ImportReport; // it was forgotten
  return { number, books, state: isLost ? 'stopped' : isOpen ? 'open' : state, report };
}
