// Owns: the file of a request on its way to a private file of this process: it has no name, so it is gone however the process ends.
// Does not: keep more of it in memory than the disk is behind, or take a file for which there is no room.

import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../error-words.ts';
import { BodyIncomplete, type BodyTaker, BodyTooLarge, type IncomingStream } from '../http/body.ts';

/** Bytes that wait for the disk before no more are read. */
const BEHIND = 1024 * 1024;

/** Bytes that must arrive in the time of a whole request: a slow line has time, and a client that is silent has not. */
const LEAST = 256 * 1024;

/** There is no room for a file, on the disk or beside those of others. */
export class NoRoomForFile extends Error {}

/** Bytes of files: their limit, and those that are in use. */
export interface FileRoom {
  readonly most: number;
  /** Takes more of the room. @returns whether there is as much. */
  take(bytes: number): boolean;
  release(bytes: number): void;
}

export class Upload implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #room: FileRoom;
  size = 0;
  /** Bytes of the room that it has. */
  #taken = 0;
  /** A hash of the content, once it is whole. */
  content = '';

  private constructor(file: FileHandle, room: FileRoom) {
    this.#file = file;
    this.#room = room;
  }

  get descriptor(): number {
    return this.#file.fd;
  }

  /**
   * @param folder for the file.
   * @throws BodyTooLarge, BodyIncomplete, NoRoomForFile
   */
  static async receive(request: IncomingStream, folder: string, room: FileRoom): Promise<Upload> {
    const { bodyLength } = request;
    const upload = new Upload(await privateFile(folder), room);
    try {
      upload.#makeRoom(bodyLength ?? 0);
      await upload.#take(request);
      return upload;
    } catch (error) {
      await upload[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #take(request: IncomingStream): Promise<void> {
    const hash = createHash('sha256');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Buffer[] = [];
    let behind = 0;
    let isOver = false;
    const fail = (error: unknown) => {
      isOver = true;
      waiting.length = 0;
      reject(error);
    };
    const write = async () => {
      for (let bytes = waiting[0]; bytes !== undefined; bytes = waiting[0]) {
        hash.update(bytes);
        await this.#file.appendFile(bytes);
        waiting.shift();
        const wasFull = behind > BEHIND;
        behind -= bytes.length;
        if (wasFull && behind <= BEHIND) request.resumeBody();
      }
      if (isOver) resolve();
    };
    const taker: BodyTaker = {
      least: LEAST,
      get isFull() {
        return behind > BEHIND;
      },
      take: (bytes) => {
        if (isOver) return;
        try {
          this.#makeRoom(this.size + bytes.length);
        } catch (error) {
          return fail(error);
        }
        this.size += bytes.length;
        behind += bytes.length;
        waiting.push(bytes);
        if (waiting.length === 1) write().catch((error) => fail(new NoRoomForFile(reasonOf(error))));
      },
      end: (isWhole) => {
        if (isOver) return;
        if (!isWhole) return fail(new BodyIncomplete());
        isOver = true;
        if (waiting.length === 0) resolve();
      },
    };
    request.takeBody(taker);
    await promise;
    this.content = hash.digest('hex');
  }

  /** @throws BodyTooLarge, NoRoomForFile */
  #makeRoom(bytes: number): void {
    if (bytes > this.#room.most) throw new BodyTooLarge();
    const more = Math.max(0, bytes - this.#taken);
    if (!this.#room.take(more)) throw new NoRoomForFile('other files use all the room');
    this.#taken += more;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#room.release(this.#taken);
    this.#taken = 0;
    await this.#file.close();
  }
}

async function privateFile(folder: string): Promise<FileHandle> {
  const path = join(folder, `.import-${randomBytes(9).toString('base64url')}`);
  try {
    const file = await open(path, 'ax+', 0o600);
    await unlink(path);
    return file;
  } catch (error) {
    throw new NoRoomForFile(reasonOf(error));
  }
}
