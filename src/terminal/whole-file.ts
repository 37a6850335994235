// Owns: files that appear complete or not at all: each is written under another name beside its place, synced, and then
// gets its name. The next run removes the leftovers of one that was killed.

import { randomBytes } from 'node:crypto';
import {
  createWriteStream,
  existsSync,
  readdirSync,
  rmSync,
  type Stats,
  statSync,
  type WriteStream,
} from 'node:fs';
import { type FileHandle, link, open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { finished } from 'node:stream/promises';
import { reasonOf } from '../error-words.ts';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';

/** The suffix of an unfinished file. It is random, so that no two runs share one; SQLite appends its own suffixes. */
const UNFINISHED = /^\.[0-9a-f]{12}\.unfinished(-journal|-wal|-shm)?$/;

/**
 * Writes a file.
 * @param overwrite whether an existing file may be replaced. It stays unchanged until the new one is complete, which
 *   gets its owner and permissions.
 * @throws what `makeWholeFile` throws.
 */
export async function writeWholeFile(
  path: string,
  overwrite: boolean,
  write: (file: WriteStream) => Promise<void>,
): Promise<void> {
  assertFree(path, overwrite);
  const there = statSync(path, { throwIfNoEntry: false });
  const like = there && { uid: there.uid, gid: there.gid, mode: there.mode | 0o600 }; // its owner must be able to write
  await makeWholeFile(path, overwrite, like, async (unfinished) => {
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

/** @throws OperatorError when the file exists and must not be replaced, or cannot be created. */
export function assertFree(path: string, overwrite: boolean): void {
  for (const folder of [dirname(path), dirname(finalPath(path))]) {
    if (!existsSync(folder)) throw new OperatorError(`There is no folder ${folder}.`);
  }
  const there = statSync(path, { throwIfNoEntry: false });
  if (there?.isFile() === false) throw new OperatorError(`${path} exists and is not a file.`);
  if (there && !overwrite) throw alreadyExists(path);
}

function alreadyExists(path: string): OperatorError {
  return new OperatorError(`${path} already exists: --overwrite replaces it.`);
}

/**
 * Puts a file in place.
 * @param overwrite whether a file may be replaced that is there, or appears meanwhile.
 * @param like gives the owner, if this user may set it, and the permissions, of which the file never gets more.
 * @param make fills the empty file at the given path.
 * @throws OperatorError when a file must not be replaced; any error of `make`. Then there is no new file. OperatorError
 *   also when the new one is in place, but its name is perhaps not on disk.
 */
export async function makeWholeFile<Made>(
  path: string,
  overwrite: boolean,
  like: Pick<Stats, 'uid' | 'gid' | 'mode'> | undefined,
  make: (unfinished: string) => Promise<Made>,
): Promise<Made> {
  const target = finalPath(path); // a symbolic link stays one
  const [folder, name] = [dirname(target), basename(target)];
  // Left by a killed run, or in use by another run: then the later run wins, and neither puts half a file in place.
  removeFrom(folder, (found) => found.startsWith(name) && UNFINISHED.test(found.slice(name.length)));
  const unfinishedName = `${name}.${randomBytes(6).toString('hex')}.unfinished`;
  const unfinished = join(folder, unfinishedName);
  const removeUnfinished = () => removeFrom(folder, (found) => found.startsWith(unfinishedName));
  let made: Made;
  try {
    const file = await open(unfinished, 'wx', like ? 0o600 : 0o666);
    try {
      if (like) await permitAs(file, like);
    } finally {
      await file.close();
    }
    made = await make(unfinished);
    await sync(unfinished);
    if (overwrite) await rename(unfinished, target);
    else await nameAnew(unfinished, target, path);
  } catch (error) {
    removeUnfinished();
    throw error;
  }
  try {
    removeUnfinished(); // its other name
    await sync(folder);
    return made;
  } catch (error) {
    throw new OperatorError(`${path} is complete, but may be lost if the power fails: ${reasonOf(error)}.`);
  }
}

/**
 * Gives a file a name that no other file has. The old name may remain.
 * @throws OperatorError when there is a file of this name by now.
 */
async function nameAnew(unfinished: string, target: string, path: string): Promise<void> {
  try {
    await link(unfinished, target); // unlike a renaming, it never replaces a file
  } catch {
    if (existsSync(target)) throw alreadyExists(path);
    await rename(unfinished, target); // some file systems have no hard links
  }
}

function removeFrom(folder: string, isMeant: (name: string) => boolean): void {
  for (const name of readdirSync(folder)) {
    if (!isMeant(name)) continue;
    try {
      rmSync(join(folder, name), { force: true });
    } catch {
      // it belongs to another user, or is not a file, and is in nobody's way
    }
  }
}

async function permitAs(file: FileHandle, like: Pick<Stats, 'uid' | 'gid' | 'mode'>): Promise<void> {
  await file.chown(like.uid, like.gid).catch(() => {}); // only root may do this
  const others = like.mode & 0o006;
  const group = (await file.stat()).gid === like.gid ? like.mode & 0o060 : others << 3;
  await file.chmod((like.mode & 0o600) | group | others);
}

/** Syncs the content of a file, or the names of the files in a folder, to disk. */
async function sync(path: string): Promise<void> {
  const file = await open(path);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
