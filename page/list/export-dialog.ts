// Owns: the dialog with the links to files of books: of those that are found, or of all.

import { queryFrom, type Search } from '../../client/src/search.ts';
import type { Session } from '../catalogue/session.ts';
import { find, make, warning } from '../elements/dom.ts';
import { EXPORT } from '../texts/export.ts';
import { LIST } from '../texts/list.ts';

/** Extensions of files and the texts of their links, the one that most people want last. */
const FORMATS = { jsonl: EXPORT.jsonl, csv: EXPORT.csv, xlsx: EXPORT.xlsx };

/** Rows of a workbook without its header. */
const MOST_IN_WORKBOOK = 1_048_575;

/** What is shown. */
export interface Shown {
  /** Undefined if all books are. */
  readonly search: Search | undefined;
  /** Of the books; undefined if it is not known. */
  readonly count: number | undefined;
  /** About how many books the search cannot find yet. */
  readonly unindexed: number;
}

export class ExportDialog {
  readonly #dialog = find<HTMLDialogElement>('#export');
  readonly #session: Session;
  readonly #content = find('#export-content');

  constructor(session: Session) {
    this.#session = session;
  }

  open({ search, count, unindexed }: Shown): void {
    const isFound = search !== undefined;
    find('#export-title').textContent = isFound ? EXPORT.saveFound(count) : EXPORT.saveAll(count);
    if (isFound && unindexed > 0) this.#content.replaceChildren(warning(LIST.unindexed(unindexed)));
    else void this.#offer(search, (count ?? 0) <= MOST_IN_WORKBOOK);
    this.#dialog.showModal();
  }

  /** Shows the links. Each gets its address, which has a key, as soon as the service has answered. */
  async #offer(search: Search | undefined, hasWorkbook: boolean): Promise<void> {
    const today = new Date().toLocaleDateString('sv'); // Swedish dates are those of ISO 8601
    const name = `books${search === undefined ? '' : '-found'}-${today}`;
    const links = Object.entries(FORMATS)
      .filter(([format]) => format !== 'xlsx' || hasWorkbook)
      .map(([format, text]) => ({ format, link: make('a', { download: `${name}.${format}` }, text) }));
    const last = links.at(-1)?.link;
    last?.classList.add('primary');
    const footer = make('footer', {}, ...links.map(({ link }) => link));
    this.#content.replaceChildren(make('p', {}, hasWorkbook ? EXPORT.explanation : EXPORT.tooMany), footer);
    try {
      const query = queryFrom({ ...search, 'link-key': await this.#session.linkKey() });
      for (const { format, link } of links) {
        link.href = `books.${format}?${query}`;
        link.addEventListener('click', () => this.#dialog.close());
      }
      last?.focus();
    } catch (error) {
      footer.replaceWith(warning(EXPORT.failed(error instanceof Error ? error.message : `${error}`)));
    }
  }
}
