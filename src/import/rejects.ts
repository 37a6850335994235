// Owns: where rejected rows go, in the format of the imported file, each record with its reason, to be fixed and
// imported again: a new file, which is created with the first rejected row, or the standard output.
// Does not: overwrite a file.

import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { asRefused, refusedName } from '../files/correcting.ts';
import type { Reading, RefusedRecord } from '../files/format.ts';
import { OperatorError } from '../operator-error.ts';

/** The default path for rejected rows: beside the imported file; of a standard stream or a pipe, in the working directory. */
export function rejectsPath(name: string, { format }: Reading): string {
  return name === '-' || /^\/(?:dev\/(?:fd\/|stdin$)|proc\/)/.test(name)
    ? refusedName(undefined, format)
    : join(dirname(name), refusedName(basename(name), format));
}

export class NoRejects extends OperatorError {
  constructor(path: string, { message }: Error) {
    super(
      `Rejected rows cannot be written to ${path}: ${message}. Run the command again with --rejects and another file.`,
    );
  }
}

/** The standard output of a command. */
export interface Output {
  readonly stdout: Pick<NodeJS.WriteStream, 'write'>;
  /** Resolves when the process must end. */
  readonly stop: Promise<unknown>;
}

export class Rejects {
  readonly #reading: Reading;
  readonly #path: string;
  readonly #output: Output | undefined;
  /** Whether a row is written. */
  #isBegun = false;
  #file: { readonly handle: FileHandle; readonly path: string } | undefined;

  /**
   * @param path of the file; if it exists, the next free name, such as `….rejects-2.csv`, is used. `-` is the output.
   * @throws OperatorError when no file can be created there.
   */
  constructor(reading: Reading, path: string, output?: Output) {
    this.#reading = reading;
    this.#path = path;
    this.#output = path === '-' ? output : undefined;
    if (path === '-') return;
    const folder = dirname(path);
    // The current folder is there, even if this user cannot enter it.
    if (folder !== '.' && !existsSync(folder))
      throw new OperatorError(`There is no folder ${folder} for rejected rows.`);
    if (existsSync(path) && !statSync(path).isFile()) {
      throw new OperatorError(`${path} exists and is not a file: choose another file for rejected rows.`);
    }
    try {
      accessSync(folder, constants.W_OK | constants.X_OK);
    } catch (error) {
      throw new NoRejects(path, error as Error);
    }
  }

  /**
   * Resolves when the records are written, so that no others are in memory.
   * @throws NoRejects when they cannot be written.
   */
  async add(records: readonly RefusedRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { before, between } = this.#reading.rejects;
    const rows = records.map((record) => asRefused(record, this.#reading)).join(between);
    await this.#write((this.#isBegun ? between : before) + rows);
    this.#isBegun = true;
  }

  /**
   * @returns the path of the file, or `-`; undefined if nothing was rejected.
   * @throws NoRejects when the end cannot be written.
   */
  async close(): Promise<string | undefined> {
    try {
      if (this.#isBegun) await this.#write(this.#reading.rejects.after);
    } finally {
      await this.#file?.handle.close();
    }
    return this.#isBegun ? (this.#file?.path ?? '-') : undefined;
  }

  async #write(text: string): Promise<void> {
    if (this.#output !== undefined) {
      const { stdout, stop } = this.#output;
      await Promise.race([new Promise((resolve) => stdout.write(text, resolve)), stop]);
      return;
    }
    try {
      this.#file ??= await create(this.#path);
      await this.#file.handle.appendFile(text);
    } catch (error) {
      throw new NoRejects(this.#path, error as Error);
    }
  }
}

async function create(path: string): Promise<{ handle: FileHandle; path: string }> {
  const ending = extname(path);
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? path : `${path.slice(0, path.length - ending.length)}-${number}${ending}`;
    try {
      return { handle: await open(free, 'ax'), path: free };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
