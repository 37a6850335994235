// Owns: how many books are shown, and how many cannot be found yet.

import { find } from '../elements/dom.ts';
import { counted, numberText } from '../elements/text.ts';
import type { Shelf } from './shelf.ts';
import { isFiltered, type View } from './view.ts';

const count = find('#count');
const late = find('#unindexed');
/** That of the library. */
const name = document.title;

/**
 * @param isLate whether other books are wanted, which cannot be asked for now.
 * @param isSaid whether a screen reader says a change of it.
 * @param isMaking whether the service makes the index without which it finds and sorts nothing.
 */
export function showCount(
  { count: { found, deleted, changed }, isCounted, unindexed }: Shelf,
  view: View,
  { isLate, isSaid, isMaking }: Readonly<Record<'isLate' | 'isSaid' | 'isMaking', boolean>>,
): void {
  const number = isCounted ? counted(found, 'book') : `More than ${counted(found, 'book')}`;
  const left = [deleted && `${numberText(deleted)} deleted`, changed && `${numberText(changed)} changed`];
  const counts = [isFiltered(view) ? `${number} found` : number, ...left].filter(Boolean).join(', ');
  const words = view.words.trim();
  const text = !isLate ? counts : words === '' ? 'Still showing other books' : `Still showing “${words}”`;
  count.ariaLive = isSaid ? 'polite' : 'off';
  if (count.textContent !== text) count.textContent = text; // it is said whenever it is written
  document.title = view.words === '' ? name : `${view.words} – ${name}`;
  late.hidden = unindexed === 0;
  const books = unindexed === 1 ? 'Some books' : `About ${counted(unindexed, 'book')}`;
  const missing = isMaking
    ? 'Searches and orders have to wait: the catalogue is still indexing its books.'
    : `${books} cannot be found yet: the catalogue is still indexing them.`;
  const notice = unindexed === 0 ? '' : missing;
  if (late.textContent !== notice) late.textContent = notice;
}
