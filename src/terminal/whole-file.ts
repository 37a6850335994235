// Owns: a file that is there whole or not at all: written under another name beside it, put on the disk, then renamed.
// What a run that was killed has left is removed by the next one.

import { randomBytes } from 'node:crypto';
import {
  createWriteStream,
  existsSync,
  readdirSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
  type WriteStream,
} from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { finished } from 'node:stream/promises';
import { OperatorError } from '../operator-error.ts';

/** What follows the name of the file: no two runs write to one; SQLite adds names of its own to it. */
const UNFINISHED = /^\.[0-9a-f]{12}\.unfinished(-journal|-wal|-shm)?$/;

/**
 * Writes a file.
 * @param overwrite whether it may be there already; it stays what it was until the new one is whole, which gets its
 *   owner and permissions.
 * @throws OperatorError when it is there and may not be; what `write` throws, and then there is no new file.
 */
export async function writeWholeFile(
  path: string,
  overwrite: boolean,
  write: (file: WriteStream) => Promise<void>,
): Promise<void> {
  assertFree(path, overwrite);
  const there = statSync(path, { throwIfNoEntry: false });
  const like = there && { uid: there.uid, gid: there.gid, mode: there.mode | 0o600 }; // it has to be written
  await makeWholeFile(path, like, async (unfinished) => {
    const file = createWriteStream(unfinished);
    try {
      await write(file);
      file.end();
      await finished(file);
    } finally {
      file.destroy();
    }
  });
}

/** @throws OperatorError when the file is there and may not be, or cannot be. */
export function assertFree(path: string, overwrite: boolean): void {
  if (!existsSync(dirname(path))) throw new OperatorError(`There is no folder ${dirname(path)}.`);
  const there = statSync(path, { throwIfNoEntry: false });
  if (there?.isFile() === false) throw new OperatorError(`${path} is there already, and not a file.`);
  if (there && !overwrite) throw new OperatorError(`${path} is there already: --overwrite replaces it.`);
}

/**
 * Puts a file in place, whatever was there before.
 * @param like whose owner it gets, if that can be, and whose permissions; never more of them.
 * @param make fills the empty file at the path that it is given.
 * @throws what `make` throws, and then there is no new file.
 */
export async function makeWholeFile<Made>(
  path: string,
  like: Pick<Stats, 'uid' | 'gid' | 'mode'> | undefined,
  make: (unfinished: string) => Promise<Made>,
): Promise<Made> {
  const target = statSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : path; // a link stays one
  const [folder, name] = [dirname(target), basename(target)];
  // Of a run that was killed, or of one under way: then the later one wins, and neither puts half of a file in place.
  removeFrom(folder, (found) => found.startsWith(name) && UNFINISHED.test(found.slice(name.length)));
  const unfinishedName = `${name}.${randomBytes(6).toString('hex')}.unfinished`;
  const unfinished = join(folder, unfinishedName);
  try {
    const file = await open(unfinished, 'wx', like ? 0o600 : 0o666);
    try {
      if (like) await permitAs(file, like);
    } finally {
      await file.close();
    }
    const made = await make(unfinished);
    await sync(unfinished);
    await rename(unfinished, target);
    await sync(folder);
    return made;
  } catch (error) {
    removeFrom(folder, (found) => found.startsWith(unfinishedName));
    throw error;
  }
}

function removeFrom(folder: string, isMeant: (name: string) => boolean): void {
  for (const name of readdirSync(folder)) {
    if (isMeant(name)) rmSync(join(folder, name), { force: true });
  }
}

async function permitAs(file: FileHandle, like: Pick<Stats, 'uid' | 'gid' | 'mode'>): Promise<void> {
  await file.chown(like.uid, like.gid).catch(() => {}); // only the superuser may
  const others = like.mode & 0o006;
  const group = (await file.stat()).gid === like.gid ? like.mode & 0o060 : others << 3;
  await file.chmod((like.mode & 0o600) | group | others);
}

/** Puts on the disk what a file holds, or what a folder's files are called. */
async function sync(path: string): Promise<void> {
  const file = await open(path);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
