// Owns: the file of what was refused: in the form of the file it comes from, each record with the reason, to be mended
// and read again. Made only when something is refused. Never writes over a file.

import { existsSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { REFUSED } from '../files/columns.ts';
import type { Reading } from '../files/reading.ts';
import type { RefusedRecord } from '../files/rows.ts';
import { OperatorError } from '../operator-error.ts';

/** The key, as it was added to an object at an earlier refusal. */
const EARLIER_REASON = new RegExp(`,?\\s*"${REFUSED}"\\s*:\\s*"(?:[^"\\\\]|\\\\.)*"\\s*\\}$`);

/** Where what is refused goes when nobody says where: beside the file that it comes from. */
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
   * @param path of the file; where there is one already, the next free `….rejects-2.csv` is taken.
   * @throws OperatorError when there cannot be one.
   */
  constructor(reading: Reading, path: string) {
    if (!existsSync(dirname(path)))
      throw new OperatorError(`There is no folder ${dirname(path)} for refused rows.`);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) {
      throw new OperatorError(`${path} is there already, and not a file: refused rows need one.`);
    }
    this.#reading = reading;
    this.#path = path;
  }

  /**
   * Resolves when they are written, so that no more than these are in memory.
   * @throws OperatorError when they cannot be.
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
        `What is refused cannot be written to ${this.#path}: ${(error as Error).message}.`,
      );
    }
  }

  /** @returns the path of the file; undefined when nothing was refused. */
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

/** On one line: within a JSON text, line ends are as good as spaces. */
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
