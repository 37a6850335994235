// Owns: a thread that works on the file, as seen by the rest of the process. One that dies ends the process.

import { once } from 'node:events';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { threadProgram } from '../../project.ts';
import type { Times } from '../../times.ts';

/** What a thread gets as its `workerData`. */
export interface ThreadData {
  /** Of the file. */
  readonly path: string;
  readonly times: Times;
  /**
   * Its element is 1 while reads wait for the sync of a commit. No thread of this process commits then, so a commit is another
   * process's.
   */
  readonly syncing: Int32Array;
  /** Of the thread that searches: whether it gets the long searches, and leaves the index to the other one. */
  readonly isLong?: boolean;
}

/**
 * Starts a thread. Resolves once it is ready, with its first message.
 * @param script of the thread, as a path in the project.
 * @throws Error with the reason.
 */
export async function startThread(script: string, data: ThreadData): Promise<Worker> {
  const cache = getCompileCacheDir();
  const { program, eval: isText } = threadProgram(script);
  const thread = new Worker(program, {
    eval: isText,
    workerData: data,
    // Without the compile cache of this process, the thread takes 10 MiB to translate one file for itself. The
    // folder is the one that was set; in it, Node has created the cache for its version.
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
  });
  await once(thread, 'message'); // or 'error', which rejects
  return thread;
}

/** Lets a thread finish its work, then ends it. */
export async function endThread(thread: Worker): Promise<void> {
  thread.postMessage('close');
  await once(thread, 'exit');
}
