// Owns: holding a command of this process half way: once it has created the unfinished file of its target.

import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

/** Holds the next command that creates such a file, until it is released or the test ends. */
export function holdHalfWay(context: { after(work: () => void): void }) {
  const { open } = promises;
  const { promise: isThere, resolve: arrive } = Promise.withResolvers<void>();
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  const restore = () => {
    promises.open = open;
    syncBuiltinESMExports();
    release();
  };
  promises.open = async (path, ...rest) => {
    const file = await open(path, ...rest);
    if (!String(path).endsWith('.unfinished')) return file;
    arrive();
    await isReleased;
    return file;
  };
  syncBuiltinESMExports();
  context.after(restore);
  return {
    /** Resolves once the command is held; fails if it has ended instead. */
    until: (ended: Promise<unknown>) =>
      Promise.race([
        isThere,
        ended.then((outcome) => Promise.reject(new Error(`not held: ${JSON.stringify(outcome)}`))),
      ]),
    release: restore,
  };
}
