// Owns: the parts of the page and what connects them.

import type { Book, BookChanges } from '../client/src/book.ts';
import { Imports } from './catalogue/imports.ts';
import { Log } from './catalogue/log.ts';
import { Complaint } from './catalogue/persist.ts';
import { loading } from './catalogue/program.ts';
import { Session } from './catalogue/session.ts';
import { BookDialog } from './changes/book-dialog.ts';
import { readFields } from './changes/book-fields.ts';
import { Edits } from './changes/edits.ts';
import { Undo } from './changes/undo.ts';
import { ask, find, refocus } from './elements/dom.ts';
import { isField } from './elements/keyboard.ts';
import { announce, show as showMessage } from './elements/messages.ts';
import { titleOf } from './elements/text.ts';
import { followThemeButtons } from './elements/theme.ts';
import { listenToKeys } from './keys.ts';
import { ExportDialog } from './list/export-dialog.ts';
import { Grid } from './list/grid.ts';
import { Place } from './list/place.ts';
import { Shelf } from './list/shelf.ts';
import { Shown } from './list/shown.ts';
import { ALL, isFiltered } from './list/view.ts';
import { Others } from './log/others.ts';
import { WhatChanged } from './log/what-changed.ts';
import { eventText } from './log/words.ts';
import { CATALOGUE } from './texts/catalogue.ts';
import { CHANGES } from './texts/changes.ts';
import { ELEMENTS } from './texts/elements.ts';

const root = find('#grid');
const words = find<HTMLInputElement>('#words');

const session = new Session();
const shelf = new Shelf(session);
const log = new Log(session);
const undo = new Undo(session, log);
const edits = new Edits(session, shelf, log, undo);
const place = new Place(shelf);

/** In a low window, the list has the room of the head (frame.css), once it is scrolled and until the head is used. */
function showHead(isShown = true): void {
  document.documentElement.classList.toggle('scrolled', !isShown);
}
for (const part of document.querySelectorAll('.bar, .line'))
  part.addEventListener('focusin', () => showHead());

/** Without a log, a person is asked before. */
async function remove(book: Book): Promise<void> {
  find('#final-question').replaceChildren(...CHANGES.isFinal(titleOf(book)));
  if ((await log.cursor()) !== undefined || (await ask(find('#final'))) !== '') edits.delete(book);
}

function change(book: Book, fields: BookChanges): void {
  edits.change(book, fields);
  const action = { label: CHANGES.undo, run: () => void undo.run(book.id) };
  showMessage(CHANGES.changed(titleOf(book)), log.isOff ? undefined : action); // a phone has no Ctrl Z
}

const bookDialog = new BookDialog(session, {
  change,
  delete: remove,
  history: ({ id }) => whatChanged.history.open(id),
  added: (book) => {
    const run = () => {
      shown.showAll('-id');
      grid.focus();
    };
    others.note(book.id, book);
    undo.push({ id: book.id, name: titleOf(book), before: null, after: book });
    showMessage(CHANGES.added(titleOf(book)), { label: CHANGES.show, run });
    shown.reload();
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
    if (refused !== undefined)
      showMessage(CHANGES.fieldNotChanged(ELEMENTS.fields[field], titleOf(book), refused.reason));
  },
  open: (book) => bookDialog.change(book),
  delete: remove,
  history: ({ id }) => whatChanged.history.open(id),
  settle: (book) => edits.settle(book),
  type: () => shown.stray(),
  moved: (first, isLong) => {
    showHead(first === 0);
    place.move(first, isLong);
  },
});
const shown = new Shown(session, shelf, grid, eventText);

const { reach } = session;
const importDialog = loading(reach, 'import.js', ({ ImportDialog }: typeof import('./import/dialog.ts')) => {
  return new ImportDialog(new Imports(session), undo, () => {
    others.skip();
    shown.reload();
  });
});
const exportDialog = new ExportDialog(session);

/** Milliseconds after which a person is told that a dialog is being loaded. */
const SLOW = 500;

/** Opens a dialog once it is loaded, unless the person does something else by then. */
async function open<Dialog>(load: () => Promise<Dialog>, work: (dialog: Dialog) => void): Promise<void> {
  let waiting: HTMLElement | undefined;
  const timer = setTimeout(() => {
    waiting = showMessage(CATALOGUE.loading);
  }, SLOW);
  const focused = document.activeElement;
  const before = document.querySelector('dialog[open]');
  try {
    const dialog = await load();
    if (document.activeElement === focused && document.querySelector('dialog[open]') === before) work(dialog);
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    showMessage(error.message);
  } finally {
    clearTimeout(timer);
    waiting?.remove();
  }
}

const whatChanged = new WhatChanged(log, undo, change, (event) =>
  shown.show({ ...ALL, order: shown.view.order, event: `${event}` }),
);
const others = new Others(session, shelf, {
  editing: (id) => (grid.bookOf(root.querySelector('.editing'))?.id === id ? grid.editing : undefined),
  changed: (id, book) => edits.restore(id, book),
  reload: () => shown.reload(),
  showLog: () => whatChanged.open(),
});

// What comes back from the service

shelf.onMoved = () => shown.follow();
shelf.onBooks = (from, to) => {
  grid.layOut();
  grid.refresh(from, to);
  place.draw(grid.first);
  if (shelf.isCounted) shown.count();
};
edits.onRow = (id) => grid.refreshBook(id);
edits.onStored = (id, book) => {
  others.note(id, book);
  shown.countAgain();
};
undo.settled = () => bookDialog.settled().then(() => edits.settled());
undo.onTakenBack = (id, book, changes) => {
  if (id === undefined) others.skip();
  else edits.takenBack(id, book, changes);
  // It may stand among these books.
  if (id === undefined || (book !== undefined && shelf.placeOf(id) === undefined)) shown.reload();
};
shown.onBooks = (began) => edits.forgetGone(began);
session.onEnd = () => others.stop();
session.onLogOut = () => undo.forget();
reach.onNoAnswer = () => void shown.showEntries();
reach.onChange = () => {
  const { isHere, trouble } = reach;
  const away = find('#away');
  away.hidden = isHere;
  if (!isHere) root.classList.remove('slow'); // the list is all that there is to read for now
  if (isHere) shown.countAgain();
  else shown.count();
  away.textContent = CATALOGUE.keptChanges(trouble);
  if (!isHere) return;
  edits.retry();
};

// Buttons and keys

const actions = {
  add: () => bookDialog.add(shelf.total === 0 ? shown.view.words.trim() : ''),
  all: () => shown.clear(),
  import: () => open(importDialog, (dialog) => dialog.open()),
  examples: () => open(importDialog, (dialog) => dialog.openExamples()),
  export: () => {
    const { isCounted, total, unindexed } = shelf;
    const search = isFiltered(shown.view) ? shelf.shown : undefined;
    exportDialog.open({ search, count: isCounted ? total : undefined, unindexed });
  },
  log: () => log.isOff || whatChanged.open(),
  explain: () => find<HTMLDialogElement>('#keys').showModal(),
  'log-out': () => void session.logOut(),
  search: () => {
    showHead();
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
  const dialog = target.closest('[data-close]')?.closest('dialog');
  if (dialog?.dispatchEvent(new Event('cancel', { cancelable: true }))) dialog.close(); // as Escape does
});

listenToKeys(actions);

// A file may be dropped anywhere, a text into fields.
for (const type of ['dragover', 'drop'] as const) {
  document.addEventListener(type, (event) => {
    const isFile = event.dataTransfer?.types.includes('Files') === true;
    if (isFile || !isField(event.target)) event.preventDefault();
  });
}
document.addEventListener('drop', ({ dataTransfer }) => {
  const file = dataTransfer?.files[0];
  const isForImport = (document.querySelector('dialog[open]')?.id ?? 'import') === 'import';
  if (file !== undefined && isForImport) void open(importDialog, (dialog) => dialog.open(file));
});

// Chromium sends this event with the next frame: the dialog may be open again, and its work is that of another opening.
document.addEventListener(
  'close',
  (event) => {
    const dialog = event.target as HTMLDialogElement;
    if (dialog.open) event.stopImmediatePropagation();
    else if (dialog.id !== 'login') refocus(); // the login has done so
  },
  true,
);

followThemeButtons();
if (matchMedia('(pointer: fine)').matches) words.focus();
const cursor = log.cursor(); // before the list: a change of its books comes after the cursor
await shown.begin();
announce(find('#count').textContent);
const from = await cursor;
if (from !== undefined) void others.follow(from);
else document.documentElement.dataset.log = 'off';
