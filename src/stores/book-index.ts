// Owns: what the search index of a store has of a book, its version, and how fast it follows.

import type { Book } from '../books/book.ts';
import { ARTICLES, filedAuthor, lastWordFirst } from '../books/filing.ts';
import { indexText } from '../books/words.ts';

/** Increase it with every change to the definition of a word or a key (`books/words.ts`, `books/folding.ts`, `books/filing.ts`): a service makes an index of another version again when it starts. */
export const INDEX_VERSION = 6;

/** If more books are to be indexed, a search does not wait for it: it takes longer than it may wait, or nearly (rule F11). */
export const MOST_AT_ONCE = 10_000;

/** While others write, indexing in the background leaves nine tenths of the time to them. */
export class Pace {
  #written: unknown;

  /**
   * @param step milliseconds that a step took.
   * @param written another value after every write of others.
   * @returns milliseconds until the next step.
   */
  pauseAfter(step: number, written: unknown): number {
    const isBesideOthers = written !== this.#written;
    this.#written = written;
    return isBesideOthers ? 9 * step : 0;
  }
}

/** What the index stores of a book. */
export interface IndexEntry {
  readonly id: number;
  readonly titleKey: string;
  readonly authorKey: string;
  readonly year: number;
  /** The author as it is filed; null if that is `lastWordFirst` of the key, as of most books: it would be a tenth of the index. */
  readonly authorFiled: string | null;
  /** With one space in between; a word may occur more than once. */
  readonly titleWords: string;
  readonly authorWords: string;
}

export function entryOf({ id, title, author, year }: Book): IndexEntry {
  const [byTitle, byAuthor] = [indexText(title), indexText(author)];
  const filed = filedAuthor(author, byAuthor.key);
  return {
    id,
    titleKey: byTitle.key,
    authorKey: byAuthor.key,
    year,
    authorFiled: filed === lastWordFirst(byAuthor.key) ? null : filed,
    titleWords: byTitle.words,
    authorWords: byAuthor.words,
  };
}

/** SQL for the author as it is filed. The first words of a key are what remains without all characters of its end that are no spaces. */
export const AUTHOR_FILED = (() => {
  const firstWords = "rtrim(author_key, replace(author_key, ' ', ''))";
  return `coalesce(author_filed, rtrim(substr(author_key, length(${firstWords}) + 1) || ' ' || ${firstWords}))`;
})();

/** SQL for whether a title begins with an article, and for the title without its first word. */
export interface ArticlesSql {
  readonly hasArticle: string;
  readonly bareTitle: string;
}

/** @param position the store's function for the position of a text in another. */
export function articlesBy(position: 'instr' | 'strpos'): ArticlesSql {
  const end = `${position}(title_key, ' ')`;
  const articles = ARTICLES.map((article) => `'${article} '`);
  return {
    hasArticle: `substr(title_key, 1, ${end}) in (${articles.join(', ')})`,
    bareTitle: `cast(substr(title_key, ${end} + 1) as text)`,
  };
}
