// Owns: files that appear complete or not at all: each is written under another name beside its place, synced, and then
// gets its name. The next run removes the leftovers of one that was killed.

import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, type Stats, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { companionsOf, sync } from '../disk.ts';
import { reasonOf } from '../error-words.ts';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';

/** The suffix of an unfinished file. It is random, so that no two runs share one. */
const UNFINISHED = /^\.[0-9a-f]{12}\.unfinished(-journal|-wal|-shm)?$/;

/** @throws OperatorError when there is a file that must not be replaced, or that a program has open as its store. */
function assertFree(path: string, overwrite: boolean): void {
  if (!existsSync(dirname(path))) throw new OperatorError(`There is no folder ${dirname(path)}.`);
  const target = finalPath(path);
  const there = statSync(target, { throwIfNoEntry: false });
  if (there?.isFile() === false) throw new OperatorError(`${path} exists and is not a file.`);
  if (there && !overwrite) throw new OperatorError(`${path} already exists: --overwrite replaces it.`);
  const companion = companionsOf(target).find(existsSync);
  if (companion === undefined) return;
  throw new OperatorError(
    `${companion} exists and may hold books: end the program that uses it and move it away, or choose another file.`,
  );
}

/**
 * @param overwrite whether an existing file may be replaced. It stays unchanged until the new one is complete, which gets
 *   its owner and permissions. A file that replaces nothing belongs to the owner of its folder, who alone may read it.
 * @param make fills the empty file at the given path.
 * @throws OperatorError when a file must not be replaced, also one that appears meanwhile; any error of `make`. Then there
 *   is no new file. OperatorError also when the new one is in place, but its name is perhaps not on disk.
 */
export async function makeWholeFile<Made>(
  path: string,
  overwrite: boolean,
  make: (unfinished: string) => Promise<Made>,
): Promise<Made> {
  assertFree(path, overwrite);
  const target = finalPath(path); // a symbolic link stays one
  const [folder, name] = [dirname(target), basename(target)];
  for (const found of readdirSync(folder)) {
    if (!found.startsWith(name) || !UNFINISHED.test(found.slice(name.length))) continue;
    rmSync(join(folder, found), { force: true }); // another run that has it open fails
  }
  const unfinished = `${target}.${randomBytes(6).toString('hex')}.unfinished`;
  let made: Made;
  try {
    const like = statSync(target, { throwIfNoEntry: false }) ?? { ...statSync(folder), mode: 0o600 };
    await create(unfinished, like);
    made = await make(unfinished);
    await sync(unfinished);
    assertFree(path, overwrite);
    renameSync(unfinished, target); // at once, so that nothing can appear in between
  } catch (error) {
    for (const file of [unfinished, ...companionsOf(unfinished)]) rmSync(file, { force: true });
    throw error;
  }
  try {
    await sync(folder);
    return made;
  } catch (error) {
    throw new OperatorError(`${path} is complete, but may be lost if the power fails: ${reasonOf(error)}.`);
  }
}

/** Creates a file with the owner of another one, if this user may give it away, and with the permissions that fit. */
async function create(path: string, like: Pick<Stats, 'uid' | 'gid' | 'mode'>): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.chown(like.uid, like.gid).catch(() => {}); // only root may
  const isOfGroup = (await file.stat()).gid === like.gid;
  await file.chmod(0o600 | (like.mode & (isOfGroup ? 0o066 : 0o006)));
}
