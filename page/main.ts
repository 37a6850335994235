// Owns: the parts of the page and what connects them: what is shown, the address, and what is said about it.

import type { Book, BookChanges } from '../client/src/book.ts';
import { termsOf } from '../src/books/words.ts';
import { Log } from './catalogue/log.ts';
import { Session } from './catalogue/session.ts';
import { BookDialog } from './changes/book-dialog.ts';
import { readFields } from './changes/book-fields.ts';
import { Edits } from './changes/edits.ts';
import { Undo } from './changes/undo.ts';
import { ask, find, refocus, sentence } from './elements/dom.ts';
import { announce, show as showMessage } from './elements/messages.ts';
import { FIELD_NAMES, titleOf } from './elements/text.ts';
import { followThemeButtons } from './elements/theme.ts';
import { ExportDialog } from './export/dialog.ts';
import { ImportDialog } from './import/dialog.ts';
import { listenToKeys } from './keys.ts';
import { Chips } from './list/chips.ts';
import { showCount } from './list/count.ts';
import { showFigures } from './list/figures.ts';
import { Grid } from './list/grid.ts';
import { Place } from './list/place.ts';
import { type Found, Shelf } from './list/shelf.ts';
import { ALL, isFiltered, ORDERS, type Order, queryOf, searchesOf, type View, viewOf } from './list/view.ts';
import { Others } from './log/others.ts';
import { WhatChanged } from './log/what-changed.ts';
import { eventText } from './log/words.ts';

/** Milliseconds after the last key before the service is asked. */
const TYPING_PAUSE = 60;

/** Milliseconds before the list turns paler because the next one is late. */
const SLOW = 150;

/** Milliseconds before a search that failed is tried again. */
const RETRY_PAUSE = 2000;

const root = find('#grid');
const words = find<HTMLInputElement>('#words');
const order = find<HTMLSelectElement>('#order');

/** What is shown: the address, the arrow, the chips, the count and the rows change together, and with it. */
let view = viewOf(new URL(location.href).searchParams);

/** What a person wants to see. It is shown when its books are here. */
let wanted = view;

let request = new AbortController();
let typing: ReturnType<typeof setTimeout> | undefined;

const session = new Session();
const shelf = new Shelf(session);
const log = new Log(session);
const undo = new Undo(session, log);
const edits = new Edits(session, shelf, log, undo);
const place = new Place(shelf);
const chips = new Chips(session, viewWithWords, show, eventText);

/** Without a log, a person is asked before. */
async function remove(book: Book): Promise<void> {
  find('#final-question').replaceChildren(...sentence`This is final. Delete “${titleOf(book)}”?`);
  if ((await log.cursor()) !== undefined || (await ask(find('#final'))) !== '') edits.delete(book);
}

function change(book: Book, fields: BookChanges): void {
  edits.change(book, fields);
  const action = { label: 'Undo', run: () => void undo.run(book.id) };
  showMessage(sentence`“${titleOf(book)}” was changed.`, log.isOff ? undefined : action); // a phone has no Ctrl Z
}

const bookDialog = new BookDialog(session, {
  change,
  delete: remove,
  history: ({ id }) => whatChanged.history.open(id),
  added: (book) => {
    const run = () => {
      show({ ...ALL, order: '-id' });
      grid.focus();
    };
    others.note(book.id, book);
    undo.push({ id: book.id, name: titleOf(book), before: null, after: book });
    showMessage(sentence`“${titleOf(book)}” was added.`, { label: 'Show', run });
    reload();
  },
});
const grid = new Grid(root, shelf, {
  stateOf: (book) => edits.stateOf(book),
  edit: (book, field, text) => {
    const read = readFields({ [field]: text });
    if ('reason' in read) return read.reason;
    if (read.fields[field] !== book[field]) edits.change(book, read.fields);
    return undefined;
  },
  leave: (book, field, refused) => {
    edits.keep(book, field, refused);
    if (refused === undefined) return;
    const what = sentence` of “${titleOf(book)}” was not changed: `;
    showMessage([FIELD_NAMES[field], ...what, refused.reason]);
  },
  open: (book) => bookDialog.change(book),
  delete: remove,
  history: ({ id }) => whatChanged.history.open(id),
  settle: (book) => edits.settle(book),
  type: () => {
    words.focus();
    words.setSelectionRange(words.value.length, words.value.length);
  },
  moved: (first, isLong) => place.move(first, isLong),
});

const importDialog = new ImportDialog(session, undo, () => {
  others.skip();
  reload();
});
const exportDialog = new ExportDialog(session);

const whatChanged = new WhatChanged(log, undo, change, (event) =>
  show({ ...ALL, order: wanted.order, event: `${event}` }),
);
const others = new Others(session, shelf, {
  editing: (id) => (grid.bookOf(root.querySelector('.editing'))?.id === id ? grid.editing : undefined),
  changed: (id, book) => edits.restore(id, book),
  reload,
  showLog: () => whatChanged.open(),
});

// What comes back from the service

shelf.onMoved = () => {
  if (root.ariaBusy !== 'true') void search(true); // one at a time, however far the reader scrolls
};
shelf.onBooks = (from, to) => {
  grid.layOut();
  grid.refresh(from, to);
  place.draw(grid.first);
  if (shelf.isCounted) count();
};
edits.onRow = (id) => grid.refreshBook(id);
edits.onStored = (id, book) => {
  others.note(id, book);
  chips.countSoon();
};
undo.settled = () => bookDialog.settled().then(() => edits.settled());
undo.onTakenBack = (id, book, changes) => {
  if (id === undefined) others.skip();
  else edits.takenBack(id, book, changes);
  // It may stand among these books.
  if (id === undefined || (book !== undefined && shelf.placeOf(id) === undefined)) reload();
};
session.onEnd = () => others.stop();
session.onLogOut = () => undo.forget();
session.reach.onChange = () => {
  const { isHere, trouble } = session.reach;
  const away = find('#away');
  away.hidden = isHere;
  if (!isHere) root.classList.remove('slow'); // the list is all that there is to read for now
  away.textContent = `${trouble} Your changes are kept, and this page tries again.`;
  if (!isHere) return;
  edits.retry();
  chips.countSoon();
};

// What is shown

/** Shows other books, from the beginning. A field is left: it stops nothing. */
function show(next: View): void {
  clearTimeout(typing);
  typing = undefined;
  grid.leaveField();
  wanted = next;
  if (words.value.trim() !== wanted.words.trim()) words.value = wanted.words;
  void search(false);
}

/** Shows the same view again, at the same place: books have come or gone. */
function reload(): void {
  void search(true);
  chips.countSoon();
}

/**
 * Searches for what is wanted. Everything stays as it is until the answer is here.
 * @param staysInPlace whether the reader's place is kept.
 */
async function search(staysInPlace: boolean): Promise<void> {
  request.abort();
  request = new AbortController();
  const { signal } = request;
  const next = wanted;
  const staysHere = staysInPlace && next === view; // the place in other books means nothing
  const slow = setTimeout(() => root.classList.toggle('slow', session.reach.isHere), SLOW);
  root.ariaBusy = 'true';
  let found: Found | undefined;
  const began = performance.now();
  try {
    for (const search of searchesOf(next)) {
      found = await shelf.find(search, staysHere ? grid.first : 0, signal);
      if (found.page.books.length > 0) break;
    }
  } catch {
    if (!signal.aborted) setTimeout(() => !signal.aborted && void search(staysInPlace), RETRY_PAUSE);
    return;
  } finally {
    clearTimeout(slow);
  }
  if (signal.aborted || found === undefined) return;
  root.classList.remove('slow');
  const { editing } = grid;
  if (editing !== undefined) {
    // A field that is being edited stays where it is. Once it is closed, the search is repeated, since a book may have changed.
    await editing;
    if (!signal.aborted) await search(staysInPlace);
    return;
  }
  root.ariaBusy = 'false';
  shelf.show(found);
  view = next;
  edits.forgetGone(began);
  grid.wanted = termsOf(shelf.shown.q ?? '');
  if (staysHere) grid.redraw();
  else grid.restart();
  showControls();
  count();
  // Looks for books that were not indexed yet, as long as nothing else is shown.
  if (shelf.unindexed > 0) setTimeout(() => !signal.aborted && reload(), RETRY_PAUSE);
}

function count(): void {
  if (showCount(shelf, view)) grid.focus();
}

/** The controls, and the address, which can be kept and sent. */
function showControls(): void {
  order.value = view.order;
  for (const header of root.querySelectorAll<HTMLElement>('[data-field]')) {
    const { field } = header.dataset;
    header.ariaSort = view.order === field ? 'ascending' : view.order === `-${field}` ? 'descending' : 'none';
  }
  chips.draw(view);
  const query = queryOf(view).toString();
  history.replaceState(null, '', query === '' ? location.pathname : `?${query}`);
}

/** What is wanted, with the words as they are in the field: somebody may be typing them. */
function viewWithWords(): View {
  return { ...wanted, words: words.value };
}

/** Shows all books, with the focus in the search. */
function clear(): void {
  words.value = '';
  words.focus();
  show({ ...ALL, order: wanted.order });
}

// The search and the order

words.addEventListener('input', () => {
  root.ariaBusy = 'true';
  clearTimeout(typing);
  typing = setTimeout(() => show(viewWithWords()), TYPING_PAUSE);
});
words.addEventListener('blur', () => {
  if (typing !== undefined) show(viewWithWords()); // later, it would close a field that was opened meanwhile
});
words.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && words.value !== '') {
    event.preventDefault();
    clear();
  } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
    event.preventDefault();
    grid.focus();
  }
});
find('.head', root).addEventListener('click', ({ target }) => {
  const field =
    target instanceof Element ? target.closest<HTMLElement>('[data-field]')?.dataset.field : undefined;
  const next = ORDERS.find((known) => known === (wanted.order === field ? `-${field}` : field));
  if (next !== undefined) show({ ...viewWithWords(), order: next });
});
order.addEventListener('change', () => show({ ...viewWithWords(), order: order.value as Order }));

// Buttons and keys

const actions = {
  add: () => bookDialog.add(shelf.total === 0 ? view.words.trim() : ''),
  all: clear,
  import: () => importDialog.open(),
  export: () =>
    exportDialog.open(isFiltered(view) ? shelf.shown : undefined, shelf.isCounted ? shelf.total : undefined),
  log: () => log.isOff || whatChanged.open(),
  figures: () => void showFigures(session, show),
  explain: () => find<HTMLDialogElement>('#keys').showModal(),
  'log-out': () => void session.logOut(),
  search: () => {
    words.focus();
    words.select();
  },
  undo: () => void undo.run(),
  redo: () => void undo.redo(),
  history: () => {
    const book = grid.bookOf(document.activeElement);
    if (book !== undefined && !log.isOff) void whatChanged.history.open(book.id);
  },
};

document.addEventListener('click', ({ target }) => {
  if (!(target instanceof Element)) return;
  const action = target.closest<HTMLElement>('[data-action]')?.dataset.action;
  if (action !== undefined) {
    find('#more').hidePopover();
    actions[action as keyof typeof actions]();
  }
  if (target.closest('[data-close]') !== null) target.closest('dialog')?.close();
});

listenToKeys(actions);

document.addEventListener('close', refocus, true);

followThemeButtons();
words.value = view.words;
showControls();
if (matchMedia('(pointer: fine)').matches) words.focus();
const cursor = log.cursor(); // before the list: a change of its books comes after the cursor
await search(false);
announce(find('#count').textContent);
void chips.count();
const from = await cursor;
if (from !== undefined) void others.follow(from);
else document.documentElement.dataset.log = 'off';
