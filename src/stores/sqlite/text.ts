// Owns: all books of a SQLite file as text, made by SQLite itself, a chunk at a time.

import type { DatabaseSync } from 'node:sqlite';
import { COLUMNS, type Column, ID_AND_FIELDS } from '../columns.ts';

/** Bytes of texts in one chunk, unless a single book has more. */
const CHUNK_BYTES = 512 * 1024;

/** Books of one chunk for whoever moves them: as fast as with more, at half the memory of the process. */
export const BULK_CHUNK_BOOKS = 250;

/** SQL for one book. */
export const AS_JSON = `json_object('id', id, ${COLUMNS.map(({ name }) => `'${name}', ${name}`).join(', ')})`;
export const AS_CSV = ['id', ...COLUMNS.map(asCsv)].join(" || ',' || ");

/** Bytes of a book's texts, known without reading them. */
const SIZE = COLUMNS.filter(({ isText }) => isText)
  .map(({ name }) => `octet_length(${name})`)
  .join(' + ');

function asCsv({ name, isText }: Column): string {
  return isText ? `'"' || replace(${name}, '"', '""') || '"'` : name;
}

type Measure = [books: number, last: number, bytes: number];

export class BookExporter {
  readonly #chunkBooks: number;
  readonly #measure;
  readonly #fit;
  readonly #read;
  #position = 0;
  #isComplete = false;

  /**
   * @param db in a transaction, so that all chunks are of one snapshot.
   * @param separator between two books of a chunk.
   * @param chunkBooks how many books a chunk has at most.
   */
  constructor(
    db: DatabaseSync,
    record: typeof AS_JSON | typeof AS_CSV,
    separator: ',' | '\n',
    chunkBooks: number,
  ) {
    this.#chunkBooks = chunkBooks;
    this.#measure = db.prepare(`
      select count(*), max(id), sum(bytes) from (
        select id, ${SIZE} as bytes from books
        where id > ? order by id limit ${chunkBooks}
      )`);
    this.#fit = db.prepare(`
      select coalesce(max(id) filter (where total <= ${CHUNK_BYTES}), min(id)) from (
        select id, sum(${SIZE}) over (order by id) as total from books
        where id > ? order by id limit ${chunkBooks}
      )`);
    // The inner query hands its rows over in order, so the text is in order without a sort of its own.
    this.#read = db.prepare(`
      select group_concat(${record}, '${separator}')
      from (select ${ID_AND_FIELDS} from books where id > ? and id <= ? order by id)`);
    for (const statement of [this.#measure, this.#fit, this.#read]) statement.setReturnArrays(true);
  }

  /** Id of the last book read; 0 before the first. */
  get position(): number {
    return this.#position;
  }

  /** Whether the last book has been read. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** @returns the next books, empty when there are none. */
  read(): string {
    let [books, last, bytes] = this.#measure.get(this.#position) as unknown as Measure;
    this.#isComplete = books < this.#chunkBooks && bytes <= CHUNK_BYTES;
    if (books === 0) return ''; // the last chunk was full
    if (bytes > CHUNK_BYTES) [last] = this.#fit.get(this.#position) as unknown as [number];
    const [text] = this.#read.get(this.#position, last) as unknown as [string];
    this.#position = last;
    return text;
  }
}
