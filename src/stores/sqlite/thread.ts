// Owns: a thread that works on the file, as seen by the rest of the process. One that dies ends the process.

import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
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

/** Lets a thread finish its work, then ends it. */
export async function endThread(thread: Worker): Promise<void> {
  thread.postMessage('close');
  await once(thread, 'exit');
}
