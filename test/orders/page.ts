// Owns: every order of a librarian's edits, deletions and undoing on the page, with a service that answers late, loses
// answers or is away, and beside another person who changes the same books, until the page is left.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Book, BookChanges, NewBook } from '../../client/src/book.ts';
import { BookChanged, CatalogueError } from '../../client/src/errors.ts';
import { pathTo } from '../support/repository.ts';
import { settled } from '../support/virtual-time.ts';
import { dispatch, element, forgetListeners, provideDocument } from './document.ts';
import { Order } from './order.ts';

provideDocument();
// By their paths, and so without their types, which need those of a browser.
const [{ Edits }, { Deletions }, { Undo }, { Shelf }] = await Promise.all(
  ['changes/edits.ts', 'changes/deletions.ts', 'changes/undo.ts', 'list/shelf.ts'].map(
    (file) => import(pathTo(`page/${file}`)),
  ),
);

interface RowState {
  readonly kind: string;
  readonly action?: string;
  readonly book?: Book;
}

/** The year of a book never changes: it says which book it is, also after it was stored again. */
const FIRST: readonly Book[] = [1, 2].map((id) => ({ id, title: `title ${id}`, author: 'author', year: id }));

const event = fc.record({
  kind: fc.constantFrom(
    ...['edit', 'edit', 'edit', 'delete', 'settle', 'undo', 'search', 'retry', 'keep mine', 'keep theirs'],
    ...['their write', 'their removal'],
  ),
  /** Of the row. */
  place: fc.constantFrom(0, 0, 1),
  field: fc.constantFrom('title' as const, 'author' as const),
});

/** What the person does beside the events, at any moment. */
const departure = fc.constantFrom('stays', 'stays', 'leaves, unless asked to stay', 'leaves');

const NEVER = new Promise<never>(() => {});

const FATES = ['is answered', 'is answered', 'answer is lost', 'is not sent'];
const fates = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 6 });

/** The service, as the client of the page sees it. */
class Catalogue {
  readonly books = new Map(FIRST.map((book) => [book.id, book]));
  readonly #keys = new Map<string, Book>();
  /** Those whose tags the client has. */
  readonly #tagged = new WeakSet<Book>();
  readonly #order: Order;
  readonly #fates: readonly string[];
  #lastId = FIRST.length;
  #calls = 0;
  isHere = false;
  /** Called with a book whose creation gets no answer. */
  onNotPutBack: (book: NewBook) => void = () => {};
  /** The page is being left: what it sends now arrives, without an answer. */
  isLeaving = false;
  /** The page is gone: it gets no answer, and requests that have not arrived yet are lost. */
  hasLeft = false;

  constructor(order: Order, fates: readonly string[]) {
    this.#order = order;
    this.#fates = fates;
  }

  get contents(): string[] {
    return [...this.books.values()].map(contentOf).toSorted();
  }

  update(id: number, changes: BookChanges, { expected }: { expected: Book }): Promise<Book> {
    return this.#call(`update ${id}`, () => {
      const book = { ...this.#find(id, expected), ...changes };
      this.books.set(id, book);
      return this.#answerWith(book);
    });
  }

  find(id: number): Promise<Book | undefined> {
    return this.#call(`find ${id}`, () => {
      const book = this.books.get(id);
      return book && this.#answerWith(book);
    });
  }

  /** As the client does: a book that is gone is no fault, and one that has no tag yet is read first. */
  async remove(id: number, { expected }: { expected?: Book }): Promise<void> {
    this.#order.expect(expected !== undefined, 'a book is deleted, whatever it is by now');
    if (expected === undefined) return;
    if (!this.#tagged.has(expected)) {
      const isThere = await this.#call(`read ${id}`, () => this.books.has(id) && this.#find(id, expected));
      if (isThere === false) return;
    }
    await this.#call(`remove ${id}`, () => {
      if (!this.books.has(id)) return;
      this.#find(id, expected);
      this.books.delete(id);
    });
  }

  async create(book: NewBook, { idempotencyKey }: { idempotencyKey: string }): Promise<Book> {
    const act = () => {
      const known = this.#keys.get(idempotencyKey);
      if (known !== undefined) return known;
      this.#lastId += 1;
      const created = { id: this.#lastId, title: '', author: '', year: 0, ...book };
      this.books.set(created.id, created);
      this.#keys.set(idempotencyKey, created);
      return created;
    };
    try {
      return await this.#call('create', act);
    } catch (error) {
      this.onNotPutBack(book);
      throw error;
    }
  }

  page() {
    return this.#call('search', () => pageOf([...this.books.values()]));
  }

  #find(id: number, expected: Book | undefined): Book {
    const book = this.books.get(id);
    if (book === undefined) throw new CatalogueError('Book not found', { status: 404 });
    if (expected !== undefined && JSON.stringify(book) !== JSON.stringify(expected))
      throw new BookChanged('Precondition failed', book, {});
    return book;
  }

  #answerWith(book: Book): Book {
    const answer = { ...book };
    this.#tagged.add(answer);
    return answer;
  }

  async #call<Answer>(name: string, act: () => Answer): Promise<Answer> {
    const outlivesPage = this.isLeaving;
    const fate = this.isHere ? 'is answered' : this.#fates[this.#calls % this.#fates.length];
    this.#calls += 1;
    const outcome = await this.#order.later(`${name} ${fate}`, () => {
      if (this.hasLeft && !outlivesPage) return NEVER;
      if (fate === 'is not sent') throw new CatalogueError('fetch failed', {});
      return act();
    });
    return await this.#order.later(`${name} is answered`, () => {
      if (this.hasLeft) return NEVER;
      if (fate === 'answer is lost') throw new CatalogueError('fetch failed', { mayBeDone: true });
      return outcome;
    });
  }
}

/** What the person wants the books to be. */
class Wanted {
  readonly #books = FIRST.map((book) => ({ ...book, isKept: true }));
  #undo: { readonly place: number; readonly before?: BookChanges }[] = [];

  get books(): string[] {
    return this.#books
      .filter(({ isKept }) => isKept)
      .map(contentOf)
      .toSorted();
  }

  isKept(place: number): boolean {
    return this.#books[place]?.isKept === true;
  }

  edit(place: number, field: 'title' | 'author', text: string): void {
    const book = this.#books[place] as Book;
    this.#undo.push({ place, before: { [field]: book[field] } });
    Object.assign(book, { [field]: text });
  }

  delete(place: number): void {
    this.#undo.push({ place });
    Object.assign(this.#books[place] as object, { isKept: false });
  }

  /** Undo will try it again. */
  notPutBack(place: number): void {
    this.#undo.push({ place });
  }

  keep(place: number): void {
    this.#undo = this.#undo.filter((entry) => entry.place !== place || entry.before !== undefined);
    Object.assign(this.#books[place] as object, { isKept: true });
  }

  undo(): void {
    const { place = 0, before } = this.#undo.pop() ?? { before: {} };
    Object.assign(this.#books[place] as object, before ?? { isKept: true });
  }
}

function pageOf(books: readonly Book[]) {
  return { books: [...books], total: books.length, unindexed: 0, next: undefined };
}

function contentOf({ title, author, year }: Omit<Book, 'id'>): string {
  return JSON.stringify([year, title, author]);
}

export const page = fc.asyncProperty(
  fc.scheduler(),
  fc.array(event, { minLength: 1, maxLength: 14 }),
  departure,
  fates,
  (scheduler, events, departure, fates) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const catalogue = new Catalogue(order, fates);
      const session = {
        reach: 'here',
        call: (work: (one: Catalogue) => Promise<unknown>) => work(catalogue),
      };
      forgetListeners();
      const shelf = new Shelf(session);
      shelf.show({ search: {}, index: 0, page: pageOf(FIRST) });
      const undo = new Undo();
      const edits = new Edits(session, shelf, undo);
      const deletions = new Deletions(session, shelf, undo);
      edits.onStored = (book: Book) => deletions.noticeChange(book);
      edits.onGone = (book: Book) => deletions.noticeGone(book);
      deletions.finishEdits = (id: number) => edits.finish(id);
      deletions.onPutBack = (id: number, book: Book) => edits.follow(id, book);

      const stateOf = (book: Book): RowState | undefined => deletions.stateOf(book) ?? edits.stateOf(book);
      const settle = (book: Book) => {
        if (deletions.stateOf(book) === undefined) edits.settle(book);
        else deletions.settle(book);
      };
      const touched = new Set<number>();
      const wanted = new Wanted();
      catalogue.onNotPutBack = ({ year = 0 }) => wanted.notPutBack(year - 1);

      const rowOf = (place: number): Book | undefined =>
        Array.from({ length: shelf.total }, (_, at) => shelf.at(at)).find((book) => book?.year === place + 1);
      let latest = new AbortController();
      const search = async () => {
        latest.abort();
        latest = new AbortController();
        const { signal } = latest;
        await deletions.send();
        const began = time.now;
        const found = await shelf.find({}, 0, signal).catch(() => undefined);
        if (found === undefined || signal.aborted) return;
        shelf.show(found);
        deletions.forgetDone(began);
      };

      let isAskedToStay = false;
      const leave = async () => {
        isAskedToStay = !dispatch('beforeunload');
        if (isAskedToStay && departure !== 'leaves') return;
        catalogue.isLeaving = true;
        dispatch('pagehide');
        await settled();
        catalogue.isLeaving = false;
        catalogue.hasLeft = true;
      };

      const act = ({ kind, place, field }: (typeof events)[number], text: string) => {
        if (catalogue.hasLeft && !kind.startsWith('their')) return;
        if (kind === 'search') void search();
        const book = rowOf(place);
        if (book === undefined) return;
        const state = stateOf(book);
        if (kind === 'edit' && state?.kind !== 'deleted') {
          edits.change({ ...book, ...state?.book }, { [field]: text });
          wanted.edit(place, field, text);
        }
        if (kind === 'delete' && state?.kind !== 'deleted') {
          edits.giveUp(book.id);
          deletions.delete(book);
          wanted.delete(place);
        }
        if (kind === 'settle' && state?.action !== undefined) {
          settle(book);
          if (['Undo', 'Put back'].includes(state.action)) wanted.keep(place);
        }
        if (kind === 'undo') {
          if (!undo.isBusy) wanted.undo();
          void undo.run();
        }
        if (kind === 'retry') for (const one of [edits, deletions]) one.retry();
        if (kind === 'keep mine' && element('#conflict').open) element('#keep-mine').click();
        if (kind === 'keep theirs' && element('#conflict').open) element('#keep-theirs').click();
        const stored = catalogue.books.get(book.id);
        if (!kind.startsWith('their') || stored === undefined) return;
        touched.add(stored.year);
        if (kind === 'their write') catalogue.books.set(stored.id, { ...stored, title: text });
        else catalogue.books.delete(stored.id);
      };
      element('#conflict').close();
      for (const [number, event] of events.entries())
        void order.later(`${event.kind} ${event.place}`, () => act(event, `text ${number}`));
      if (departure !== 'stays') void order.later(departure, leave);
      await order.untilQuiet();

      const fails = touched.size > 0 || fates.some((fate) => fate !== 'is answered');
      if (catalogue.hasLeft) {
        if (!fails && !isAskedToStay) assert.deepEqual(catalogue.contents, wanted.books);
        return;
      }

      for (const place of FIRST.keys()) {
        const row = rowOf(place);
        const action = row && stateOf(row)?.action;
        if (wanted.isKept(place) && touched.size === 0)
          assert.notEqual(action, 'Undo', 'a book is to be deleted that is to be kept');
      }

      // The service is here again, and the person settles everything.
      catalogue.isHere = true;
      for (let round = 0; round < 5; round += 1) {
        for (const place of FIRST.keys()) {
          const book = rowOf(place);
          const state = book && stateOf(book);
          if (book === undefined) continue;
          if (state?.kind === 'unsaved' || state?.kind === 'changed') settle(book);
          if (state?.action === 'Put back' && wanted.isKept(place) && fails) settle(book);
        }
        if (element('#conflict').open) element('#keep-mine').click();
        void deletions.send();
        await order.untilQuiet();
      }

      // What could not be put back before another search can only be taken back once more.
      const isInReach = (place: number) => !wanted.isKept(place) || rowOf(place) !== undefined;
      if (touched.size === 0 && [...FIRST.keys()].every(isInReach))
        assert.deepEqual(catalogue.contents, wanted.books);

      for (const place of FIRST.keys()) {
        const book = rowOf(place);
        const state = book && stateOf(book);
        const alive = [...catalogue.books.values()].filter(({ year }) => year === FIRST[place]?.year);
        assert.ok(alive.length <= 1, `a book is stored twice: ${JSON.stringify(alive)}`);
        if (book === undefined) continue;
        if (state?.kind === 'deleted') {
          assert.equal(state.action, 'Put back');
          const isBack = ({ id }: Book) => id > FIRST.length; // only the answer to that was lost
          assert.ok(alive.every(isBack), 'a book is shown as deleted, and is there');
          settle(book);
          await order.untilQuiet();
          const again = rowOf(place) as Book;
          assert.deepEqual(stateOf(again), undefined);
          assert.deepEqual(catalogue.books.get(again.id), again, 'a book is not back as it is shown');
        } else {
          assert.equal(state, undefined);
          if (!touched.has(book.year))
            assert.deepEqual(alive, [book], 'the page shows another book than the stored one');
        }
      }

      // Undo, until there is nothing to undo, stores no book a second time.
      for (let press = 0; press < events.length; press += 1) {
        void undo.run();
        await order.untilQuiet();
      }
      const years = [...catalogue.books.values()].map(({ year }) => year);
      assert.deepEqual(years, [...new Set(years)], 'Undo stores a book twice');
    }),
);
