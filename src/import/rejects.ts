// Owns: the file of rejected rows: in the format of the imported file, each record with its reason, to be fixed and
// imported again. It is created with the first rejected row.
// Refuses: to overwrite a file.

import { existsSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { REFUSED } from '../files/columns.ts';
import type { Reading } from '../files/reading.ts';
import type { RefusedRecord } from '../files/rows.ts';
import { OperatorError } from '../operator-error.ts';

/** The key that was added to an object when it was rejected before. */
const EARLIER_REASON = new RegExp(`,?\\s*"${REFUSED}"\\s*:\\s*"(?:[^"\\\\]|\\\\.)*"\\s*\\}$`);

/** The default path for rejected rows: beside the imported file. */
export function rejectsPath(name: string, { format }: Reading): string {
  const ending = format === 'csv' ? 'csv' : 'jsonl';
  if (name === '-') return `rejects.${ending}`;
  const withoutEnding = basename(name, extname(name)).replace(/\.rejects(?:-\d+)?$/, '');
  return join(dirname(name), `${withoutEnding}.rejects.${ending}`);
}

export class Rejects {
  readonly #reading: Reading;
  readonly #path: string;
  #file: { readonly handle: FileHandle; readonly path: string } | undefined;

  /**
   * @param path of the file; if it exists, the next free name, such as `….rejects-2.csv`, is used.
   * @throws OperatorError when no file can be created there.
   */
  constructor(reading: Reading, path: string) {
    if (!existsSync(dirname(path)))
      throw new OperatorError(`There is no folder ${dirname(path)} for rejected rows.`);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) {
      throw new OperatorError(`${path} exists and is not a file: choose another file for rejected rows.`);
    }
    this.#reading = reading;
    this.#path = path;
  }

  /**
   * Resolves when the records are written, so that no others are in memory.
   * @throws OperatorError when they cannot be written.
   */
  async add(records: readonly RefusedRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { header } = this.#reading;
    const text: string[] = [];
    try {
      if (this.#file === undefined) {
        this.#file = await create(this.#path);
        if (header !== undefined) text.push(`${header.text}${header.delimiter}${REFUSED}\n`);
      }
      for (const record of records)
        text.push(header === undefined ? toJson(record) : toCsv(record, header.delimiter));
      await this.#file.handle.appendFile(text.join(''));
    } catch (error) {
      throw new OperatorError(
        `Rejected rows cannot be written to ${this.#path}: ${(error as Error).message}. --rejects names another file.`,
      );
    }
  }

  /** @returns the path of the file; undefined if nothing was rejected. */
  async close(): Promise<string | undefined> {
    await this.#file?.handle.close();
    return this.#file?.path;
  }
}

async function create(path: string): Promise<{ handle: FileHandle; path: string }> {
  const ending = extname(path);
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? path : `${path.slice(0, path.length - ending.length)}-${number}${ending}`;
    try {
      return { handle: await open(free, 'wx'), path: free };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

function toCsv(record: RefusedRecord, delimiter: string): string {
  const { original, takesReason } = record;
  return takesReason
    ? `${original}${delimiter}"${explain(record).replaceAll('"', '""')}"\n`
    : `${original}\n`;
}

/** On one line: in JSON, line ends between values are equivalent to spaces. */
function toJson(record: RefusedRecord): string {
  const line = record.original.replaceAll(/\s*[\r\n]\s*/g, ' ');
  if (!record.takesReason) return `${line}\n`;
  const fields = line.replace(EARLIER_REASON, '}').slice(0, -1);
  const comma = /^\{\s*$/.test(fields) ? '' : ',';
  return `${fields}${comma}${JSON.stringify(REFUSED)}:${JSON.stringify(explain(record))}}\n`;
}

function explain({ column, reason }: RefusedRecord): string {
  return column === undefined ? reason : `${column}: ${reason}`;
}
