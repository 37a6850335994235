// Owns: the file of a request on its way to a private file of this process: it has no name, so it is gone however the process ends.
// Does not: keep more of it in memory than the disk is behind, or take a file for which there is no room.

import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { reasonOf } from '../error-words.ts';
import { BodyIncomplete, type BodyTaker, BodyTooLarge, type IncomingStream } from '../http/body.ts';

/** Bytes that wait for the disk before no more are read. */
const BEHIND = 1024 * 1024;

/** Bytes that must arrive in the time of a whole request: a slow line has time, and a client that is silent has not. */
const LEAST = 256 * 1024;

/** There is no room for a file, on the disk or beside those of others. */
export class NoRoomForFile extends Error {}

/** Files at the same time. */
const MOST_FILES = 16;

/** The room for the files of a process. */
export class FileRoom {
  readonly #most: number;
  readonly #giveUpOne: () => boolean;
  files = 0;
  bytes = 0;

  /**
   * @param most bytes of all files.
   * @param giveUpOne removes a file that nobody needs at the moment. @returns whether there was one.
   */
  constructor(most: number, giveUpOne: () => boolean) {
    this.#most = most;
    this.#giveUpOne = giveUpOne;
  }

  /** @throws NoRoomForFile */
  enter(): void {
    if (this.files >= MOST_FILES && !this.#giveUpOne()) throw new NoRoomForFile('too many files are here');
    this.files += 1;
  }

  /** @throws BodyTooLarge if a file may not be so large; NoRoomForFile */
  take(more: number, size: number): void {
    if (size > this.#most) throw new BodyTooLarge();
    while (this.bytes + more > this.#most)
      if (!this.#giveUpOne()) throw new NoRoomForFile('other files use all the room');
    this.bytes += more;
  }

  leave(bytes: number): void {
    this.bytes -= bytes;
    this.files -= 1;
  }
}

export class Upload implements AsyncDisposable {
  #file: FileHandle | undefined;
  readonly #room: FileRoom;
  size = 0;
  /** Bytes of the room that it has. */
  #taken = 0;
  #isGone = false;
  /** A hash of the content, once it is whole. */
  content = '';

  private constructor(room: FileRoom) {
    this.#room = room;
  }

  get descriptor(): number {
    return (this.#file as FileHandle).fd;
  }

  /**
   * @param folder for the file.
   * @throws BodyTooLarge, BodyIncomplete, NoRoomForFile
   */
  static async receive(request: IncomingStream, folder: string, room: FileRoom): Promise<Upload> {
    room.enter();
    const upload = new Upload(room);
    try {
      upload.#makeRoom(request.bodyLength ?? 0);
      upload.#file = await privateFile(folder);
      await upload.#take(request, upload.#file);
      return upload;
    } catch (error) {
      await upload[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #take(request: IncomingStream, file: FileHandle): Promise<void> {
    const hash = createHash('sha256');
    const bytes = new Writable({
      highWaterMark: BEHIND,
      write(some, _, done) {
        file.appendFile(some).then(
          () => done(),
          (error) => done(new NoRoomForFile(reasonOf(error))),
        );
      },
    });
    const taker: BodyTaker = {
      least: LEAST,
      get isFull() {
        return bytes.writableNeedDrain;
      },
      take: (some) => {
        if (bytes.destroyed) return;
        try {
          this.#makeRoom(this.size + some.length);
        } catch (error) {
          bytes.destroy(error as Error);
          return;
        }
        this.size += some.length;
        hash.update(some);
        bytes.write(some);
      },
      end: (isWhole) => void (isWhole ? bytes.end() : bytes.destroy(new BodyIncomplete())),
    };
    bytes.on('drain', () => request.resumeBody());
    request.takeBody(taker);
    await finished(bytes);
    this.content = hash.digest('hex');
  }

  /** @param size that the file has now, or will have. */
  #makeRoom(size: number): void {
    const more = Math.max(0, size - this.#taken);
    this.#room.take(more, size);
    this.#taken += more;
  }

  /** May be called again. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#room.leave(this.#taken);
    await this.#file?.close().catch(() => {}); // it has no name, and nobody needs its content
  }
}

async function privateFile(folder: string): Promise<FileHandle> {
  const path = join(folder, `.import-${randomBytes(9).toString('base64url')}`);
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'ax+', 0o600);
    await unlink(path);
    return file;
  } catch (error) {
    await file?.close(); // Node.js ends a process that forgets one
    throw new NoRoomForFile(reasonOf(error));
  }
}
