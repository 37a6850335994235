// Owns: the dialog for saving books as a file: what is shown, or all of them.

import type { Search } from '../../client/src/search.ts';
import type { Session } from '../catalogue/session.ts';
import { button, find, make, warning } from '../elements/dom.ts';
import { ProgressView } from '../elements/progress.ts';
import { saveFile } from '../elements/save-file.ts';
import { counted, numberText } from '../texts/english.ts';
import { type ExportFormat, exportBooks } from './books.ts';

export class ExportDialog {
  readonly #dialog = find<HTMLDialogElement>('#export');
  readonly #session: Session;
  readonly #content = find('#export-content');
  readonly #status = find('#export-status');
  #work = new AbortController();

  constructor(session: Session) {
    this.#session = session;
    this.#dialog.addEventListener('close', () => this.#work.abort());
  }

  /**
   * Opens the dialog.
   * @param search that is shown; undefined if all books are.
   * @param count of the books that are shown; undefined if it is not known.
   */
  open(search: Search | undefined, count: number | undefined): void {
    const books = count === undefined ? 'the books' : counted(count, 'book');
    find('#export-title').textContent =
      search === undefined
        ? `Save all ${count === undefined ? '' : `${numberText(count)} `}books`
        : `Save ${books} found`;
    this.#dialog.showModal();
    this.#choose(search, count);
  }

  #choose(search: Search | undefined, count: number | undefined, complaint?: string): void {
    this.#status.textContent = '';
    const save = (format: ExportFormat) => () => void this.#save(search, count, format);
    const excel = button('Save for Excel', save('excel'), { class: 'primary' });
    const others = [button('Save as JSON', save('json')), button('Save as CSV', save('csv'))];
    const text =
      'The file for Excel opens by a double click; in it, no title becomes a formula, a number or a date. CSV is for other spreadsheets, JSON for other programs. An import adds books: it adds a book that was corrected in the file beside the one that is here.';
    const alert = complaint === undefined ? [] : [warning(complaint)];
    this.#content.replaceChildren(make('p', {}, text), ...alert, make('footer', {}, ...others, excel));
    excel.focus();
  }

  async #save(search: Search | undefined, count: number | undefined, format: ExportFormat): Promise<void> {
    this.#work = new AbortController();
    const { signal } = this.#work;
    const view = new ProgressView('Collecting the books', this.#status, () => this.#dialog.close());
    this.#content.replaceChildren(...view.parts);
    view.heading.focus();
    let done = 0;
    const onProgress = (books: number) => {
      done = books;
    };
    try {
      const file = await view.watch(
        exportBooks(this.#session, search, format, { onProgress, signal }),
        () => ({ done, total: count, text: `${counted(done, 'book')} so far.`, trouble: '' }),
      );
      saveFile(file);
      this.#dialog.close();
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : error;
      this.#choose(search, count, `Nothing was saved: ${reason}. Try again.`);
    }
  }
}
