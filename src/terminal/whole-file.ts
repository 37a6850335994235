// Owns: files that appear complete or not at all: each is written under another name beside its place, synced, and then
// renamed. The next run removes the leftovers of one that was killed.

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
import { type FileHandle, open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { finished } from 'node:stream/promises';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';

/** The suffix of an unfinished file. It is random, so that no two runs share one; SQLite appends its own suffixes. */
const UNFINISHED = /^\.[0-9a-f]{12}\.unfinished(-journal|-wal|-shm)?$/;

/**
 * Writes a file.
 * @param overwrite whether an existing file may be replaced. It stays unchanged until the new one is complete, which
 *   gets its owner and permissions.
 * @throws OperatorError when an existing file must not be replaced; any error of `write`. Then there is no new file.
 */
export async function writeWholeFile(
  path: string,
  overwrite: boolean,
  write: (file: WriteStream) => Promise<void>,
): Promise<void> {
  assertFree(path, overwrite);
  const there = statSync(path, { throwIfNoEntry: false });
  const like = there && { uid: there.uid, gid: there.gid, mode: there.mode | 0o600 }; // its owner must be able to write
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

/** @throws OperatorError when the file exists and must not be replaced, or cannot be created. */
export function assertFree(path: string, overwrite: boolean): void {
  for (const folder of [dirname(path), dirname(finalPath(path))]) {
    if (!existsSync(folder)) throw new OperatorError(`There is no folder ${folder}.`);
  }
  const there = statSync(path, { throwIfNoEntry: false });
  if (there?.isFile() === false) throw new OperatorError(`${path} exists and is not a file.`);
  if (there && !overwrite) throw new OperatorError(`${path} already exists: --overwrite replaces it.`);
}

/**
 * Puts a file in place, and replaces any file that was there.
 * @param like gives the owner, if this user may set it, and the permissions, of which the file never gets more.
 * @param make fills the empty file at the given path.
 * @throws any error of `make`; then there is no new file.
 */
export async function makeWholeFile<Made>(
  path: string,
  like: Pick<Stats, 'uid' | 'gid' | 'mode'> | undefined,
  make: (unfinished: string) => Promise<Made>,
): Promise<Made> {
  const target = finalPath(path); // a symbolic link stays one
  const [folder, name] = [dirname(target), basename(target)];
  // Left by a killed run, or in use by another run: then the later run wins, and neither puts half a file in place.
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
