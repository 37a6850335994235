// Owns: the parts of the page and what connects them: what is shown, the address, and what is said about it.

import type { Book } from '../client/src/book.ts';
import { termsOf } from '../src/books/words.ts';
import { BookDialog, showAdded } from './book-dialog.ts';
import { readFields } from './book-fields.ts';
import { Deletions } from './deletions.ts';
import { find, refocus } from './dom.ts';
import { Edits } from './edits.ts';
import { countOf, showFigures, WITHOUT_AUTHOR, WITHOUT_YEAR } from './figures.ts';
import { Grid } from './grid.ts';
import { announce, show as showMessage } from './messages.ts';
import { Session } from './session.ts';
import { Shelf } from './shelf.ts';
import { bookText, counted, numberText, titleOf } from './text.ts';
import { followThemeButtons } from './theme.ts';
import { Undo } from './undo.ts';
import {
  ALL,
  isFiltered,
  ORDERS,
  type Order,
  queryOf,
  searchesOf,
  type View,
  viewOf,
  yearIn,
} from './view.ts';

/** Milliseconds after the last key before the service is asked. */
const TYPING_PAUSE = 60;

/** Milliseconds before the list turns paler because its successor is late. */
const SLOW = 150;

/** Milliseconds before a search that failed is tried again. */
const RETRY_PAUSE = 2000;

/** Milliseconds after a change before it is counted again what is missing. */
const COUNT_PAUSE = 500;

/** Milliseconds in which the place is shown after the last long move. */
const PLACE_TIME = 900;

const root = find('#grid');
const words = find<HTMLInputElement>('#words');
const order = find<HTMLSelectElement>('#order');

const session = new Session();
const shelf = new Shelf(session);
const undo = new Undo();
const edits = new Edits(session, shelf, undo);
const deletions = new Deletions(session, shelf, undo);
const remove = (book: Book) => deletions.delete(edits.giveUp(book));
const bookDialog = new BookDialog(session, {
  change: (book, fields) => {
    const takeBack = edits.change(book, fields);
    const run = () => undo.runThis(takeBack);
    showMessage(`“${titleOf(book)}” was changed.`, { label: 'Undo', run }); // a phone has no Ctrl Z
  },
  delete: remove,
  added: (book) => {
    showAdded(book, () => {
      show({ ...ALL, order: '-id' });
      grid.focus();
    });
    reload();
  },
});
const grid = new Grid(root, shelf, {
  stateOf: (book) => deletions.stateOf(book) ?? edits.stateOf(book),
  edit: (book, field, text) => {
    const read = readFields({ [field]: text });
    if ('reason' in read) return read.reason;
    if (read.fields[field] !== book[field]) edits.change(book, read.fields);
    return undefined;
  },
  open: (book) => bookDialog.change(book),
  delete: remove,
  settle: (book) => {
    if (deletions.stateOf(book) === undefined) edits.settle(book);
    else deletions.takeBack(book);
  },
  type: (character) => {
    words.focus();
    words.value += character;
    words.dispatchEvent(new Event('input'));
  },
  moved: showPlace,
});

// A third of the page's programs, which most visits do not need: loaded when they are wanted.
const importDialog = made(async () => {
  const { ImportDialog } = await import('./import-dialog.ts');
  return new ImportDialog(session, reload);
});
const exportDialog = made(async () => {
  const { ExportDialog } = await import('./export-dialog.ts');
  return new ExportDialog(session);
});

/** @returns what makes a dialog when it is first wanted; a message says so if its program cannot be loaded. */
function made<Dialog>(make: () => Promise<Dialog>): () => Promise<Dialog | undefined> {
  let dialog: Promise<Dialog> | undefined;
  return () => {
    dialog ??= make();
    return dialog.catch(() => {
      dialog = undefined;
      showMessage('The catalogue does not answer. Try again in a moment, or reload this page.');
      return undefined;
    });
  };
}

let view = viewOf(new URL(location.href).searchParams);
let request = new AbortController();

/** Shows other books, from the beginning. */
function show(next: View): void {
  clearTimeout(typing);
  view = next;
  if (words.value.trim() !== view.words.trim()) words.value = view.words;
  void search(false, deletions.send());
}

/** Shows the same view again, at the same place: books have come or gone. */
function reload(): void {
  void search(true);
  countMissingSoon();
}

/**
 * Searches for what the view says. The list stays as it is until the answer is here.
 * @param staysInPlace whether the reader's place is kept.
 * @param before is awaited first.
 */
async function search(staysInPlace: boolean, before?: Promise<void>): Promise<void> {
  request.abort();
  request = new AbortController();
  const { signal } = request;
  const slow = setTimeout(() => root.classList.toggle('slow', session.reach === 'here'), SLOW);
  root.ariaBusy = 'true';
  showControls();
  try {
    await before;
    // A field that somebody types in stays where it is: the list waits.
    for (const search of searchesOf(view)) {
      await shelf.search(search, staysInPlace ? grid.first : 0, signal, () => !grid.isEditing);
      if (shelf.total > 0) break;
    }
  } catch {
    if (!signal.aborted) setTimeout(() => !signal.aborted && void search(staysInPlace), RETRY_PAUSE);
    clearTimeout(slow);
    return;
  }
  clearTimeout(slow);
  if (signal.aborted) return;
  root.classList.remove('slow');
  root.ariaBusy = 'false';
  deletions.forgetDone();
  grid.wanted = termsOf(shelf.shown.q ?? '');
  if (staysInPlace) grid.redraw();
  else grid.restart();
  showCount();
  if (shelf.unindexed > 0) reloadLater(signal);
}

/** Looks for books that were not indexed yet, as long as nothing else is shown. */
function reloadLater(signal: AbortSignal): void {
  setTimeout(() => {
    if (signal.aborted) return;
    if (grid.isEditing) reloadLater(signal);
    else reload();
  }, RETRY_PAUSE);
}

function showCount(): void {
  const { total, isCounted, unindexed } = shelf;
  const number = isCounted ? counted(total, 'book') : `More than ${counted(total, 'book')}`;
  const text = isFiltered(view) ? `${number} found` : number;
  const count = find('#count');
  if (count.textContent !== text) count.textContent = text; // it is said whenever it is written
  document.title = view.words === '' ? 'Book catalogue' : `${view.words} – Book catalogue`;
  const late = find('#unindexed');
  late.hidden = unindexed === 0;
  late.textContent =
    unindexed === 0
      ? ''
      : `About ${counted(unindexed, 'book')} cannot be found yet: the catalogue is still indexing them.`;

  const isNothing = total === 0;
  root.classList.toggle('nothing', isNothing);
  const hadFocus = find('#nothing').contains(document.activeElement);
  find('#nothing').hidden = !isNothing;
  if (!isNothing) {
    if (hadFocus) grid.focus();
    return;
  }
  const name = view.words.trim();
  find('#nothing-title').textContent = !isFiltered(view)
    ? 'The shelf is empty'
    : name === ''
      ? 'No such books'
      : `Nothing matches “${name}”`;
  find('#nothing-advice').textContent = isFiltered(view)
    ? 'Try fewer letters, or another spelling.'
    : 'Add the first book, or import a file of books.';
  find('#nothing-add').textContent = name === '' ? 'Add a book' : `Add “${name}”`;
  find('#nothing-import').hidden = isFiltered(view);
  find('#nothing-all').hidden = !isFiltered(view);
}

/** The controls, and the address, which can be kept and sent. */
function showControls(): void {
  find('#clear').hidden = words.value === '';
  order.value = view.order;
  for (const header of root.querySelectorAll<HTMLElement>('[data-field]')) {
    const { field } = header.dataset;
    header.ariaSort = view.order === field ? 'ascending' : view.order === `-${field}` ? 'descending' : 'none';
  }
  const year = yearIn(view.words)?.year ?? (view.year === 0 ? undefined : view.year);
  chip('year').textContent = year === undefined ? '' : `Published in ${year}`;
  press('newest', view.order === '-id');
  press('no-year', view.year === 0);
  press('no-author', view.isAuthorless === true);
  press('year', view.year !== undefined && view.year !== 0);
  offer('year', year !== undefined);
  for (const name of ['no-year', 'no-author'] as const) offer(name, missing[name] > 0);
  const query = queryOf(view).toString();
  history.replaceState(null, '', query === '' ? location.pathname : `?${query}`);
}

type ChipName = 'newest' | 'no-year' | 'no-author' | 'year';

function chip(name: ChipName): HTMLElement {
  return find(`[data-chip=${name}]`);
}

function press(name: ChipName, isPressed: boolean): void {
  chip(name).ariaPressed = String(isPressed);
}

/** How many books lack something, as counted last. */
const missing = { 'no-year': 0, 'no-author': 0 };

/** Shows a chip if it is useful. One that is pressed stays, so that it can be released. */
function offer(name: ChipName, isUseful: boolean): void {
  const isPressed = chip(name).ariaPressed === 'true';
  const isHidden = chip(name).textContent === '' || !(isUseful || isPressed);
  if (isHidden && chip(name) === document.activeElement) words.focus();
  chip(name).hidden = isHidden;
}

/** What a chip shows when it is pressed. */
function afterChip(name: ChipName): View {
  const { words, order, year, isAuthorless } = viewWithWords();
  switch (name) {
    case 'newest':
      return { ...viewWithWords(), order: order === '-id' ? ALL.order : '-id' };
    case 'no-year':
      return { words, order, ...(year !== 0 && { year: 0 }) };
    case 'no-author':
      return { words, order, ...(!isAuthorless && { isAuthorless: true }) };
    case 'year': {
      const found = yearIn(words);
      if (found === undefined) return { words, order };
      return { words: found.others, order, year: found.year };
    }
  }
}

for (const element of document.querySelectorAll<HTMLElement>('[data-chip]'))
  element.addEventListener('click', () => show(afterChip(element.dataset.chip as ChipName)));

let counting: ReturnType<typeof setTimeout> | undefined;

function countMissingSoon(): void {
  clearTimeout(counting);
  counting = setTimeout(() => void countMissing(), COUNT_PAUSE);
}

/** The chips for what is missing in the catalogue: shown only if something is. */
async function countMissing(): Promise<void> {
  const chips = [
    ['no-year', WITHOUT_YEAR, 'without a year'],
    ['no-author', WITHOUT_AUTHOR, 'without an author'],
  ] as const;
  for (const [name, lacking, text] of chips) {
    const count = await session.call((catalogue) => countOf(catalogue, lacking)).catch(() => undefined);
    if (count === undefined) continue;
    missing[name] = count;
    chip(name).textContent = `${numberText(count)} ${text}`;
    offer(name, count > 0);
  }
}

// The search field

let typing: ReturnType<typeof setTimeout> | undefined;
words.addEventListener('input', () => {
  clearTimeout(typing);
  find('#clear').hidden = words.value === '';
  typing = setTimeout(() => show(viewWithWords()), TYPING_PAUSE);
});

/** The view with the words as they are in the field: somebody may be typing them. */
function viewWithWords(): View {
  return { ...view, words: words.value };
}
words.addEventListener('keydown', (event) => {
  if (event.isComposing) return;
  if (event.key === 'Escape' && words.value !== '') {
    event.preventDefault();
    clear();
  } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
    event.preventDefault();
    grid.focus();
  }
});
find('#clear').addEventListener('click', clear);

/** Shows all books, with the focus in the search. */
function clear(): void {
  clearTimeout(typing);
  words.value = '';
  words.focus();
  show({ ...ALL, order: view.order });
}

// The order

find('.head', root).addEventListener('click', ({ target }) => {
  const field =
    target instanceof Element ? target.closest<HTMLElement>('[data-field]')?.dataset.field : undefined;
  const next = ORDERS.find((known) => known === (view.order === field ? `-${field}` : field));
  if (next !== undefined) show({ ...viewWithWords(), order: next });
});
order.addEventListener('change', () => show({ ...viewWithWords(), order: order.value as Order }));

// The place in a long list

const place = find('#place');
let placeTimer: ReturnType<typeof setTimeout> | undefined;

function showPlace(first: number, isLong: boolean): void {
  if (!isLong && place.hidden) return;
  place.hidden = false;
  placeText(first);
  clearTimeout(placeTimer);
  placeTimer = setTimeout(() => {
    place.hidden = true;
  }, PLACE_TIME);
}

function placeText(first: number): void {
  const book = shelf.at(first);
  const beginning = book === undefined ? '' : ` · ${bookText(book)}`;
  place.textContent = `${numberText(first + 1)}${beginning}`;
}

shelf.onBooks = (from, to) => {
  grid.layOut();
  grid.refresh(from, to);
  if (!place.hidden) placeText(grid.first);
  if (shelf.isCounted) showCount();
};

// The service

for (const changes of [edits, deletions]) {
  changes.onRow = (id) => grid.refreshBook(id);
}
deletions.onStored = countMissingSoon;
edits.onStored = (book) => {
  deletions.noticeChange(book);
  countMissingSoon();
};
edits.onGone = (book) => deletions.noticeGone(book);
deletions.onPutBack = (id, book) => edits.follow(id, book);
session.onReach = (reach) => {
  const away = find('#away');
  away.hidden = reach === 'here';
  if (reach !== 'here') root.classList.remove('slow'); // the list is all that there is to read for now
  away.textContent =
    reach === 'busy'
      ? 'The catalogue is busy or not ready yet. Nothing is lost: this page tries again by itself.'
      : 'The catalogue does not answer. Nothing is lost: this page tries again by itself.';
  if (reach === 'here') edits.retry();
};

// Buttons and keys

const actions: Readonly<Record<string, () => void>> = {
  add: () => bookDialog.add(shelf.total === 0 ? view.words.trim() : ''),
  all: clear,
  import: async () => (await importDialog())?.open(),
  export: async () => {
    void deletions.send(); // a file has no Undo
    const dialog = await exportDialog();
    dialog?.open(isFiltered(view) ? shelf.shown : undefined, shelf.isCounted ? shelf.total : undefined);
  },
  figures: () => void showFigures(session, show),
  keys: () => find<HTMLDialogElement>('#keys').showModal(),
  // Everything that the page knows goes with it.
  'log-out': () => location.reload(),
};

document.addEventListener('click', ({ target }) => {
  if (!(target instanceof Element)) return;
  const action = target.closest<HTMLElement>('[data-action]')?.dataset.action;
  if (action !== undefined) {
    find('#more').hidePopover();
    actions[action]?.();
  }
  if (target.closest('[data-close]') !== null) target.closest('dialog')?.close();
});

// A file may be dropped anywhere.
document.addEventListener('dragover', (event) => event.preventDefault());
document.addEventListener('drop', (event) => {
  event.preventDefault();
  const file = event.dataTransfer?.files[0];
  if (file === undefined || document.querySelector('dialog[open]') !== null) return;
  void importDialog().then((dialog) => dialog?.open(file));
});

document.addEventListener('close', refocus, true);

addEventListener('keydown', (event) => {
  if (document.querySelector('dialog[open]') !== null) return;
  const isCommand = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  const isInField = event.target instanceof HTMLInputElement;
  if (isCommand && key === 'k') {
    words.focus();
    words.select();
  } else if (isCommand && key === 'z' && !event.shiftKey && !isInField) undo.run();
  else if (key === 'insert' || (event.altKey && key === 'n')) actions.add?.();
  else if (key === 'f1') actions.keys?.();
  else return;
  event.preventDefault();
});

followThemeButtons();
words.value = view.words;
showControls();
if (matchMedia('(pointer: fine)').matches) words.focus();
await search(false);
announce(find('#count').textContent);
void countMissing();
