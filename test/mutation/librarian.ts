// Owns: mutants of the page itself: what goes wrong for a librarian. Those that an order of events or a search in Node.js
// shows are noticed there, all others in Chromium.

import { Mutants } from './mutant.ts';

const ORDERS = 'test/orders/orders.test.ts';
const CHANGES = 'test/browser/page-changes.test.ts';
const KEYS = 'test/browser/page-keys.test.ts';
const KEYBOARD = 'test/page/keyboard.test.ts';
const FINDING = 'test/browser/page.test.ts';
const FILES = 'test/browser/page-import.test.ts';
const LOGIC = 'test/page/logic.test.ts';
const EXPORT = 'test/page/export.test.ts';
const ROWS = 'test/page/file-of-books.test.ts';
const SHELF = 'test/page/shelf.test.ts';
const STORING = 'test/page/storing.test.ts';
const TEXTS = 'test/browser/page-texts.test.ts';
const PROXY = 'test/browser/page-proxy.test.ts';
const TOGETHER = 'test/browser/page-together.test.ts';
const TROUBLE = 'test/browser/page-trouble.test.ts';
const EVERYBODY = 'test/browser/page-accessibility.test.ts';

export const LIBRARIAN_MUTANTS = new Mutants()
  .in('page/catalogue/refusal.ts')
  .mutant('a proxy in front of the catalogue refuses a change', LOGIC, 'what a proxy answers')
  .change(' || error.isForeign', '')
  .mutant('a proxy that drops the login loses what was typed', LOGIC, 'what a proxy answers')
  .change('[401, 412, 429]', '[412, 429]')
  .in('page/catalogue/session.ts')
  .mutant('another password loses the typed text', TROUBLE, 'another password: a login over the page')
  .change('if (!(error instanceof WrongCredentials)) {', 'if (error) {')
  .mutant('nobody is logged out without a touch', TROUBLE, 'after thirty minutes without a touch')
  .change(
    'if (this.#catalogue === undefined) return;\n    clear',
    'if (this !== undefined) return;\n    clear',
  )
  .mutant('an old answer hides that the network is gone', TROUBLE, 'when the network went')
  .change('if (began >= this.#offlineSince)', 'if (began >= 0)')
  .mutant('a service that is away is asked more and more often', TROUBLE, 'by turns is asked no more often')
  .change('this.#probing ??= setTimeout', 'this.#probing = setTimeout')
  .mutant('the password stays in the page', FINDING, 'a login that is refused')
  .change("password.value = '';", '')
  .mutant('a person who leaves the page sends nothing more', CHANGES, 'what is struck through')
  .change('const keepalive = this.#isLeaving;', 'const keepalive = false;')
  .mutant('the login hides that it is refused for a while', FINDING, 'a login that is refused')
  .change('error.status === 429)', 'error.status === 430)')
  .mutant('a login page of another origin seems to be an outage', PROXY, 'redirects to another host')
  .change("redirect: 'manual', credentials,", 'credentials,')
  .mutant('nothing says that a proxy wants a password', PROXY, 'one that wants a password: ')
  .change('(?:basic|', '(?:')
  .mutant(
    'a browser that asks for a password hides that a proxy wants it',
    PROXY,
    'for which the browser asks',
  )
  .change("if (this.#reach === 'away') void this.#findLock();", '')
  .mutant('a proxy that shortens answers is not noticed', PROXY, 'shortens answers')
  .change("this.#reach === 'here' && (status === 0", 'status < 0 && (status === 0')
  .in('page/changes/book-dialog.ts')
  .mutant('a book that was added while the service hung is stored twice', TROUBLE, 'answers that are lost')
  .change(
    'const idempotencyKey = this.#key;',
    'this.#key = randomKey();\n    const idempotencyKey = this.#key;',
  )
  .mutant('a late answer closes the dialog for another book', CHANGES, 'a late answer to an added book')
  .change('if (this.#key !== idempotencyKey) return;\n', '')
  .mutant('nothing says that a new title is here already', CHANGES, 'a warning if the title is there')
  .change('this.#suggest(signal) : this.#warn(signal)', 'this.#suggest(signal) : Promise.resolve()')
  .mutant('a typed book is lost when the page is left', CHANGES, 'a text that is not stored yet')
  .change('dialog.open && this.#typedTexts().length > 0', 'dialog.open && this.#book')
  .mutant('fields that nobody touched are stored', CHANGES, 'only the fields that were touched')
  .change(
    'Object.entries(textsOfInputs()) : typed)',
    'Object.entries(textsOfInputs()) : Object.entries(textsOfInputs()))',
  )
  .in('page/changes/book-fields.ts')
  .mutant('a book may lose its title', LOGIC, 'or refused with the reason')
  .change("field === 'title' && text === ''", "field === 'title' && text === ' '")
  .mutant('a text that cannot be stored is sent', LOGIC, 'or refused with the reason')
  .change('readBookChanges({ [field]: text }) === undefined', 'readBookChanges({ [field]: text }) === null')
  .in('page/changes/deletions.ts')
  .mutant('a deletion is lost when the page is left', CHANGES, 'a person who goes to another page')
  .change("addEventListener('pagehide', () => void this.send());", '')
  .mutant('nobody is asked to stay before a deletion is certain', ORDERS, 'undoing on the page')
  .change('if (!this.#canBeLeft()) event', 'if (false) event')
  .mutant('a book is deleted, whatever it is by now', ORDERS, 'undoing on the page')
  .change('{ expected: sent.book }', '{}')
  .mutant('a book is put back twice', ORDERS, 'undoing on the page')
  .change('this.#keys.get(id) ?? randomKey()', 'randomKey()')
  .mutant('Undo is too late while a deletion is sent', ORDERS, 'undoing on the page')
  .change('this.#set({ ...deletion, isTakenBack: true });', '')
  .mutant('a change is lost with its deletion', ORDERS, 'undoing on the page')
  .change('const left = await this.finishEdits(id);', 'const left = undefined;')
  .mutant('Undo brings back a book that is there', ORDERS, 'undoing on the page')
  .change('if (deletion !== undefined) this.#undo.drop(deletion.takeBack);', '')
  .mutant('a book that was not deleted can be put back', ORDERS, 'undoing on the page')
  .change('this.#undo.drop(takeBack);\n      this.#forget', 'this.#forget')
  .mutant('a changed book seems to be deleted until Undo is over', TOGETHER, 'without the time for Undo')
  .change('if (found !== undefined && isSame)', 'if (found !== undefined)')
  .in('page/changes/edits.ts')
  .mutant('a typed text is lost behind a proxy that changes tags', PROXY, 'changes the tags of books')
  .change('if (isRefusal(error) && error.status === 200)', 'if (false)')
  .mutant('a change overwrites that of somebody else', TOGETHER, 'change the same field')
  .change('const options = { expected: before };', 'const options = {};')
  .mutant('a change that follows another at once is lost', ORDERS, 'undoing on the page')
  .change('if (later.length > 0) {', 'if (later.length > FIELDS.length) {')
  .mutant('a change is lost when the page is left', ORDERS, 'undoing on the page')
  .change('if (this.#edits.size + this.#refused.size > 0)', 'if (this.#refused.size > 0)')
  .mutant(
    'Undo looks for a book that was put back under its old id',
    CHANGES,
    'sent after ten seconds, or with a search',
  )
  .change('this.#latest.set(id, book).set(book.id, book);', 'this.#latest.set(book.id, book);')
  .mutant('what somebody else has deleted is lost with what was typed', TOGETHER, 'the typed text is shown')
  .change('this.onGone({ ...before, ...changes });', '')
  .mutant('two people who change different fields are asked which', TOGETHER, 'change different fields')
  .change('own.some((one) => one[field] === theirs[field])', 'own.length === 0')
  .mutant('a change that was given up can be undone', TOGETHER, 'change the same field')
  .change('for (const takeBack of takeBacks) this.#undo.drop(takeBack);\n    this.#forget', 'this.#forget')
  .in('page/changes/undo.ts')
  .mutant('the oldest change is undone first', LOGIC, 'and each once')
  .change('this.#entries.pop()', 'this.#entries.shift()')
  .mutant('a change that was taken back is undone again', LOGIC, 'and each once')
  .change('if (at >= 0) this.#entries.splice(at, 1);', '')
  .mutant('Control Z does not wait for what is being taken back', LOGIC, 'waits for the one')
  .change('if (this.isBusy) {', 'if (this.#running > 1) {')
  .in('page/elements/dom.ts')
  .mutant('a browser translates titles', TEXTS, 'is translated')
  .change("translate: 'no', dir", 'dir')
  .mutant('a text may be HTML', TOGETHER, 'hostile texts are shown as text')
  .change(
    'element.append(...children.filter((child) => child !== undefined));',
    "for (const child of children) typeof child === 'string' ? element.insertAdjacentHTML('beforeend', child) : child && element.append(child);",
  )
  .in('page/elements/keyboard.ts')
  .mutant('keys of a Russian keyboard do nothing', KEYBOARD, 'counts by its place')
  .change('if (isLetter && !/^\\p{sc=Latin}/u.test(typed)) return placed;', '')
  .mutant('keys of a Dvorak keyboard count by their places', KEYBOARD, 'counts by its place')
  .change("return isNamed ? placed : '';", 'return placed;')
  .mutant('a Polish letter in the search adds a book', KEYBOARD, 'type what they type')
  .change("(isLetter || target.id !== 'words')", "target.id !== 'words'")
  .mutant('Enter of an input method saves half a word', KEYBOARD, 'kept from every listener')
  .change('!event.isComposing && event.keyCode', 'event.keyCode')
  .mutant('Enter of an input method saves half a word in Safari', KEYBOARD, 'kept from every listener')
  .change(' && event.keyCode !== 229', '')
  .mutant('Enter of an input method logs in', KEYS, 'end a conversion do nothing else')
  .change("if (['Enter', 'Escape', 'Tab'].includes(event.key)) event.preventDefault();", '')
  .mutant('undo in the list undoes the search', KEYS, 'only in the field that has the focus')
  .change('if (isUndo && event.target !== document.activeElement) event.preventDefault();', '')
  .in('page/elements/text.ts')
  .mutant('years before Christ are shown without it', LOGIC, 'a year as people write it')
  .change('BC` : String(year)', '` : String(year)')
  .mutant('blanks that nobody sees are a title', LOGIC, 'or refused with the reason')
  .change('\\p{Cc}\\p{Cf}]/u', ']/u')
  .mutant('line ends vanish from what is edited', LOGIC, 'is shown in one line')
  .change("book[field].replace(/[\\r\\n]+/g, ' ')", 'book[field]')
  .in('page/elements/theme.ts')
  .mutant('a theme is forgotten', FINDING, 'only the theme is stored')
  .change("choose(storage()?.getItem(NAME) ?? '');", "choose('');")
  .in('page/export/books.ts')
  .mutant('a file lacks books that are not indexed yet', EXPORT, 'does not find all books')
  .change('if (unindexed > 0) throw', 'if (unindexed < 0) throw')
  .in('page/import/calls.ts')
  .mutant('blanks make a book another one', LOGIC, 'make no other book')
  .change('trimmed(title)}', 'title}')
  .in('page/import/dialog.ts')
  .mutant('a corrected row is not compared with the catalogue', FILES, 'twice in the file, or doubtful')
  .change('this.#comparedAt = Number.NEGATIVE_INFINITY;\n          this.#warning', 'this.#warning')
  .mutant('corrections are lost without a warning', FILES, 'imports by keyboard alone')
  .change(
    'if (this.#check?.hasCorrections !== true || this.#warning.isConnected) return true;',
    'if (this.#check) return true;',
  )
  .in('page/import/doubts.ts')
  .mutant('a column of numbers is imported as years', LOGIC, 'more often a mistake')
  .change("return 'this year is yet to come';", 'return undefined;')
  .in('page/import/refused.ts')
  .mutant('other columns lose what was corrected', FILES, 'an export of Goodreads')
  .change('this.#typed.set(typedAt, read);', '')
  .in('page/import/storing.ts')
  .mutant('books that may be stored are stored again', STORING, 'is repeated as it was')
  .change('createAll(books, options)', 'createAll(books, { ...options, idempotencyKey: randomKey() })')
  .mutant('a book that is too long stops an import', STORING, 'too long are left out')
  .change('this.#split(books);\n    }\n    const', 'throw error;\n    }\n    const')
  .mutant('to undo an import removes what somebody has changed', STORING, 'unless somebody has changed them')
  .change('if (digestOfBook(book) !== digest) return false;', '')
  .mutant('after a day, books may be stored twice', STORING, 'after a day')
  .change('if (Date.now() - chunk.sentAt > SETTLED_WITHIN) throw', 'if (Date.now() < 0) throw')
  .mutant('an import ends when the catalogue is away', STORING, 'is repeated as it was')
  .change('if (signal.aborted || !isAway(error)) throw error;', 'throw error;')
  .in('page/import/worker.ts')
  .mutant('a part of a file that has changed counts as all of it', ROWS, 'saved again after it was chosen')
  .change('if (done && bytes !== file.size) throw', 'if (done && bytes < 0) throw')
  .mutant('books that are here are imported again', ROWS, 'here already, twice in the file')
  .change('if (row !== undefined) this.#states[row] = HERE;', '')
  .mutant('books that are twice in a file are imported twice', ROWS, 'here already, twice in the file')
  .change('this.#firstRows.has(key) ? TWICE : FRESH', 'FRESH')
  .mutant('a file of an older program is refused', ROWS, 'of any form and encoding')
  .change("return this.#readAs(file, choices, 'Windows-1252');", 'throw error;')
  .mutant('a person cannot leave out a row, and read the next one', ROWS, 'can be chosen')
  .change('if (layout !== this.#layout)', 'if (false)')
  .mutant('a book like one of the catalogue is imported unasked', ROWS, 'same to the eye')
  .change('this.#doubts.set(alike, ALIKE_HERE);', '')
  .mutant('doubtful books are imported unasked', ROWS, 'here already, twice in the file')
  .change('if (!isDoubtfulToo && this.#doubts.has(this.#next)) continue;', '')
  .in('page/keys.ts')
  .mutant('Control Z in a field undoes the latest deletion', KEYS, 'in a field, Control Z')
  .change(' && !isField(event.target)', '')
  .mutant('a key that is held undoes everything', KEYBOARD, 'one change a press')
  .change('if (!event.repeat) keys.undo();', 'keys.undo();')
  .mutant('AltGr is a shortcut', KEYBOARD, 'type what they type')
  .change(' || isWithAltGr(event)', '')
  .in('page/list/cell-editor.ts')
  .mutant('a Hebrew title has its signs on the wrong side while it is edited', TEXTS, 'from right to left')
  .change("      dir: 'auto',\n", '')
  .mutant(
    'a text that is not stored yet is lost when the page is left',
    CHANGES,
    'a text that is not stored yet',
  )
  .change(
    'if (this.#input !== undefined && this.#input.value !== this.#before) event',
    'if (this.#input === null) event',
  )
  .mutant('a text that cannot be stored is lost', CHANGES, 'a refused text stops nothing')
  .change("this.#close('elsewhere', refused);", "this.#close('elsewhere');")
  .in('page/list/chips.ts')
  .mutant('a chip that is pressed disappears', FINDING, 'chips: the newest first')
  .change('!(isUseful || isPressed)', '!isUseful')
  .in('page/list/count.ts')
  .mutant('an empty list does not say that it is empty', FINDING, 'nothing found: all books again')
  .change('nothing.hidden = !isNothing;', 'nothing.hidden = true;')
  .in('page/list/grid.ts')
  .mutant('a title that is cut can only be read in a field', TEXTS, 'a title that is cut')
  .change('text.title = text.textContent;', 'text.title;')
  .mutant('one click changes a book', CHANGES, 'one click selects a cell')
  .change('cell !== undefined && cell === this.#pressed', 'cell !== undefined')
  .mutant('rows are read in another order than they are shown', EVERYBODY, 'a screen reader gets a grid')
  .change('this.#all.insertBefore(row.element, after);', 'this.#all.append(row.element);')
  .in('page/list/shelf.ts')
  .mutant('a late answer shows a book as it was before its change', LOGIC, 'does not hide the change')
  .change(
    'changed !== undefined && changed.at >= began ? changed.book : book',
    'changed?.at === began ? changed.book : book',
  )
  .mutant('books are missing below those that were changed', SHELF, 'not found any more, and goes to the end')
  .change('if (cursor === undefined && index > 0 && this.#hasMoved) {', 'if (index < 0) {')
  .mutant('the end of a list that has become shorter is empty', LOGIC, 'is one of the last page')
  .change(
    'while (page.books.length === 0 && index > 0) {',
    'while (page.books.length === 0 && index > 1e6) {',
  )
  .mutant('the list is longer than the books of the service', LOGIC, 'whichever page answers last')
  .change('books.length === 0 ? Math.min(this.total, end) : end', 'end')
  .mutant('a list of long books has gaps', LOGIC, 'is continued')
  .change('while (next !== undefined && books.length < PAGE) {', 'while (next?.limit !== undefined) {')
  .in('page/list/view.ts')
  .mutant('many words find nothing', LOGIC, 'more than 16 different words')
  .change('.length > MOST_WORDS) pieces.pop();', '.length > 2 * MOST_WORDS) pieces.pop();')
  .mutant('a year among the words finds nothing', LOGIC, 'a year among the words')
  .change('found === undefined ? [] : wordsWanted(found.others)', '[]')
  .mutant('the beginning of a word finds nothing', LOGIC, 'the last word may be incomplete')
  .change('[...last.word].length >= SHORTEST_PREFIX', '[...last.word].length < 0')
  .mutant('an address with an invalid year shows no books', LOGIC, 'whatever is invalid in an address')
  .change('/^-?\\d{1,15}$/.test(year)', "year !== ''")
  .in('page/main.ts')
  .mutant('no text can be dropped into a field', TEXTS, 'a text is dropped')
  .change('isFile || !isField(event.target)', 'isFile || event')
  .mutant('a late answer shows what was searched for before', FINDING, 'the last words win')
  .change(
    '  request.abort();\n  request = new AbortController();\n  const { signal }',
    '  request = new AbortController();\n  const { signal }',
  )
  .mutant('a search closes the field that somebody types in', CHANGES, 'and no field is in use')
  .change('if (editing !== undefined) {', 'if (false) {')
  .mutant(
    'a search leaves deleted books in the catalogue',
    CHANGES,
    'sent after ten seconds, or with a search',
  )
  .change('void search(false, deletions.send());', 'void search(false);')
  .mutant('a search that failed is never tried again', TROUBLE, 'a service that does not answer')
  .change(
    'if (!signal.aborted) setTimeout(() => !signal.aborted && void search(staysInPlace), RETRY_PAUSE);',
    '',
  ).all;
