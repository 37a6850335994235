// Owns: how many books are shown, and how many cannot be found yet.

import { find } from '../elements/dom.ts';
import { LIST } from '../texts/list.ts';
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
  const books = LIST.books(found, { isAtLeast: !isCounted, isFound: isFiltered(view) });
  const counts = [books, deleted && LIST.deleted(deleted), changed && LIST.changed(changed)];
  const text = isLate ? LIST.stillShown(view.words.trim()) : counts.filter(Boolean).join(', ');
  count.ariaLive = isSaid ? 'polite' : 'off';
  if (count.textContent !== text) count.textContent = text; // it is said whenever it is written
  document.title = view.words === '' ? name : `${view.words} – ${name}`;
  late.hidden = unindexed === 0;
  const notice = unindexed === 0 ? '' : isMaking ? LIST.indexing : LIST.unindexed(unindexed);
  if (late.textContent !== notice) late.textContent = notice;
}
