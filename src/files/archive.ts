// Owns: files within a file: a gzip file (RFC 1952), and the entries of a ZIP archive.
// Does not: trust them. An entry is checked as a whole before any of it is read, and a file that unpacks to far more than its own
// size, as no table does, is refused before it takes time or memory.

import { pipeline, Readable } from 'node:stream';
import { crc32, createGunzip } from 'node:zlib';
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl';
import { OperatorError } from '../operator-error.ts';

/** Bytes of an archive: it is read in the order of its directory, which is at its end. */
const LARGEST = 128 * 1024 * 1024;

/** A file may unpack to so many bytes, or to so many times its size. */
const UNPACKED = 64 * 1024 * 1024;
const TIMES = 200;

/** Entries of an archive: no workbook has more. */
const MOST_ENTRIES = 10_000;

export function isGzip([one, two]: Uint8Array): boolean {
  return one === 0x1f && two === 0x8b;
}

export function isZip([one, two, three, four]: Uint8Array): boolean {
  return one === 0x50 && two === 0x4b && ((three === 3 && four === 4) || (three === 5 && four === 6));
}

/** The content of a gzip file. @throws OperatorError when it is damaged, after what precedes the damage. */
export async function* unzipped(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let [packed, unpacked] = [0, 0];
  async function* counted() {
    for await (const piece of bytes) {
      packed += piece.length;
      yield piece;
    }
  }
  const content = createGunzip();
  pipeline(Readable.from(counted()), content, () => {}); // the code that reads gets an error
  try {
    for await (const piece of content as AsyncIterable<Uint8Array>) {
      unpacked += piece.length;
      assertSize(unpacked, packed);
      yield piece;
    }
  } catch (error) {
    throw /^Z_/.test(`${(error as NodeJS.ErrnoException).code}`) ? damaged(error) : error;
  }
}

/** The entries of a ZIP archive, without folders. */
export class Archive {
  readonly #zip: ZipFile;
  /** By their names in lower case, since references to them may have another one. */
  readonly #entries: ReadonlyMap<string, Entry>;
  /** Those whose checksum is right. */
  readonly #checked = new Set<Entry>();

  private constructor(zip: ZipFile, entries: ReadonlyMap<string, Entry>) {
    this.#zip = zip;
    this.#entries = entries;
  }

  /** @throws OperatorError when it is damaged, or too large. */
  static async open(bytes: AsyncIterable<Uint8Array>): Promise<Archive> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    for await (const piece of bytes) {
      length += piece.length;
      if (length > LARGEST)
        throw new OperatorError('The file has more than 128 MiB: unpack it, or save it as CSV in UTF-8.');
      pieces.push(piece);
    }
    try {
      const zip = await fromBufferPromise(Buffer.concat(pieces, length), { autoClose: false });
      if (zip.entryCount > MOST_ENTRIES) throw new Error(`it has ${zip.entryCount} entries`);
      const entries = await Array.fromAsync(zip.eachEntry());
      const files = entries.filter(({ fileName }) => !fileName.endsWith('/'));
      return new Archive(zip, new Map(files.map((entry) => [entry.fileName.toLowerCase(), entry])));
    } catch (error) {
      throw damaged(error);
    }
  }

  get names(): readonly string[] {
    return Array.from(this.#entries.values(), ({ fileName }) => fileName);
  }

  /** Bytes of an entry; 0 for a name that the archive lacks. */
  sizeOf(name: string): number {
    return this.#entries.get(name.toLowerCase())?.uncompressedSize ?? 0;
  }

  /** The content of an entry; nothing for a name that the archive lacks. @throws OperatorError when it is damaged, before anything of it. */
  async *read(name: string): AsyncGenerator<Uint8Array, void, void> {
    const entry = this.#entries.get(name.toLowerCase());
    if (entry === undefined) return;
    try {
      assertSize(entry.uncompressedSize, entry.compressedSize);
      if (!this.#checked.has(entry)) await this.#check(entry);
      yield* await this.#zip.openReadStreamPromise(entry);
    } catch (error) {
      throw damaged(error);
    }
  }

  async #check(entry: Entry): Promise<void> {
    let sum = 0;
    for await (const piece of await this.#zip.openReadStreamPromise(entry)) sum = crc32(piece, sum);
    if (sum !== entry.crc32) throw new Error(`the checksum of ${entry.fileName} is wrong`);
    this.#checked.add(entry);
  }
}

function assertSize(unpacked: number, packed: number): void {
  if (unpacked > Math.max(UNPACKED, TIMES * packed))
    throw new OperatorError(
      `The file unpacks to more than ${TIMES} times its size: it is damaged, or no table.`,
    );
}

function damaged(error: unknown): OperatorError {
  if (error instanceof OperatorError) return error;
  const reason = (error as Error).message.replace(/\.$/, '');
  return new OperatorError(`The file is damaged (${reason}): save it again.`);
}
