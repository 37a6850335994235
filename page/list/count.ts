// Owns: how many books are shown, and what stands in place of the list if there are none.

import { find, make, sentence } from '../elements/dom.ts';
import { counted, numberText } from '../elements/text.ts';
import type { Shelf } from './shelf.ts';
import { isFiltered, type View } from './view.ts';

const root = find('#grid');
const count = find('#count');
const late = find('#unindexed');
const nothing = find('#nothing');

/**
 * @param isLate whether other books are wanted, which cannot be asked for now.
 * @param isSaid whether a screen reader says a change of it.
 * @returns whether the list has taken the place of something that had the focus.
 */
export function showCount(
  { total, count: { found, deleted, changed }, isCounted, unindexed }: Shelf,
  view: View,
  { isLate, isSaid }: { readonly isLate: boolean; readonly isSaid: boolean },
): boolean {
  const number = isCounted ? counted(found, 'book') : `More than ${counted(found, 'book')}`;
  const left = [deleted && `${numberText(deleted)} deleted`, changed && `${numberText(changed)} changed`];
  const counts = [isFiltered(view) ? `${number} found` : number, ...left].filter(Boolean).join(', ');
  const name = view.words.trim();
  const text = !isLate ? counts : name === '' ? 'Still showing other books' : `Still showing “${name}”`;
  count.ariaLive = isSaid ? 'polite' : 'off';
  if (count.textContent !== text) count.textContent = text; // it is said whenever it is written
  document.title = view.words === '' ? 'Book catalogue' : `${view.words} – Book catalogue`;
  late.hidden = unindexed === 0;
  const books = unindexed === 1 ? 'Some books' : `About ${counted(unindexed, 'book')}`;
  late.textContent =
    unindexed === 0 ? '' : `${books} cannot be found yet: the catalogue is still indexing them.`;

  const isNothing = total === 0;
  root.classList.toggle('nothing', isNothing);
  find('#chips').hidden = isNothing && !isFiltered(view);
  const hadFocus = nothing.contains(document.activeElement);
  nothing.hidden = !isNothing;
  if (!isNothing) return hadFocus;
  find('#nothing-title').replaceChildren(
    ...(!isFiltered(view)
      ? ['No books yet']
      : name === ''
        ? ['No such books']
        : sentence`Nothing matches “${name}”`),
  );
  find('#nothing-advice').textContent = isFiltered(view)
    ? 'Try fewer letters, or another spelling.'
    : 'Add the first book, or import a file. Examples can be removed again by Undo.';
  const add = name === '' ? ['Add a book'] : sentence`Add “${name}”`;
  find('#nothing-add').replaceChildren(make('span', {}, ...add)); // the button sets its children apart
  for (const name of ['import', 'examples']) find(`#nothing-${name}`).hidden = isFiltered(view);
  find('#nothing-all').hidden = !isFiltered(view);
  return false;
}
