// Owns: the dialog for saving books as a file: what is shown, or all of them.

import type { Search } from '../../client/src/search.ts';
import type { Session } from '../catalogue/session.ts';
import { button, find, make, warning } from '../elements/dom.ts';
import { ProgressView } from '../elements/progress.ts';
import { saveFile } from '../elements/save-file.ts';
import { EXPORT } from '../texts/export.ts';
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
    this.#work.abort();
    find('#export-title').textContent =
      search === undefined ? EXPORT.saveAll(count) : EXPORT.saveFound(count);
    this.#dialog.showModal();
    this.#choose(search, count);
  }

  #choose(search: Search | undefined, count: number | undefined, complaint?: string): void {
    this.#status.textContent = '';
    const save = (format: ExportFormat) => () => void this.#save(search, count, format);
    const excel = button(EXPORT.excel, save('excel'), { class: 'primary' });
    const others = [button(EXPORT.json, save('json')), button(EXPORT.csv, save('csv'))];
    const alert = complaint === undefined ? [] : [warning(complaint)];
    this.#content.replaceChildren(
      make('p', {}, EXPORT.explanation),
      ...alert,
      make('footer', {}, ...others, excel),
    );
    excel.focus();
  }

  async #save(search: Search | undefined, count: number | undefined, format: ExportFormat): Promise<void> {
    this.#work = new AbortController();
    const { signal } = this.#work;
    const view = new ProgressView(EXPORT.collecting, this.#status, () => this.#dialog.close());
    this.#content.replaceChildren(...view.parts);
    view.heading.focus();
    let done = 0;
    const onProgress = (books: number) => {
      done = books;
    };
    try {
      const file = await view.watch(
        exportBooks(this.#session, search, format, { onProgress, signal }),
        () => ({ done, total: count, text: EXPORT.soFar(done), trouble: '' }),
      );
      saveFile(file);
      this.#dialog.close();
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : error;
      this.#choose(search, count, EXPORT.failed(`${reason}`));
    }
  }
}
