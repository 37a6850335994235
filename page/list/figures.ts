// Owns: the status of the catalogue: the number of books, the fields that they lack, and the latest books. Each figure
// leads to its books.

import type { Book } from '../../client/src/book.ts';
import type { BookCatalogue } from '../../client/src/book-catalogue.ts';
import type { Session } from '../catalogue/session.ts';
import { AS_IT_IS, button, find, make } from '../elements/dom.ts';
import { bookText, numberText } from '../elements/text.ts';
import { ALL, searchesOf, type View } from './view.ts';

const LATEST = 5;

export const WITHOUT_YEAR: View = { ...ALL, year: 0 };
export const WITHOUT_AUTHOR: View = { ...ALL, isAuthorless: true };
const NEWEST: View = { ...ALL, order: '-id' };

/** The number of books of a view; undefined if counting takes the service too long. */
export async function countOf(
  catalogue: BookCatalogue,
  view: View,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const search = { ...searchesOf(view)[0], sort: 'id', limit: 1 }; // in the order that costs the least
  return (await catalogue.page(search, { count: true, signal })).total;
}

/**
 * Opens the dialog and fills it.
 * @param open shows a view in the list.
 */
export async function showFigures(session: Session, open: (view: View) => void): Promise<void> {
  const dialog = find<HTMLDialogElement>('#figures');
  const list = find('#figures-list');
  const latest = find('#figures-latest');
  list.replaceChildren();
  latest.replaceChildren();
  dialog.showModal();
  const follow = (view: View) => () => {
    dialog.close();
    open(view);
  };
  const figure = (count: number | undefined, words: string, view: View) => {
    const value = make('b', {}, count === undefined ? 'many' : numberText(count));
    return make('li', {}, make('button', { type: 'button', click: follow(view) }, value, ` ${words}`));
  };
  const line = (book: Book) =>
    make('li', {}, button(bookText(book), follow(NEWEST), { ...AS_IT_IS, class: 'link' }));
  try {
    await session.call(async (catalogue) => {
      const all = await countOf(catalogue, ALL);
      const yearless = await countOf(catalogue, WITHOUT_YEAR);
      const authorless = await countOf(catalogue, WITHOUT_AUTHOR);
      const { books } = await catalogue.page({ sort: '-id', limit: LATEST });
      list.replaceChildren(
        figure(all, all === 1 ? 'book' : 'books', ALL),
        figure(yearless, 'without a year', WITHOUT_YEAR),
        figure(authorless, 'without an author', WITHOUT_AUTHOR),
      );
      latest.replaceChildren(...books.map(line));
    });
  } catch {
    list.replaceChildren(make('li', {}, session.reach.trouble || 'The catalogue does not answer.'));
  }
}
