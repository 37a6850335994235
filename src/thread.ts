// Owns: starting a thread of this process.

import { once } from 'node:events';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { threadProgram } from './project.ts';

/**
 * Starts a thread. Resolves once it is ready, with its first message.
 * @param script of the thread, as a path in the project.
 * @param data what it gets as its `workerData`.
 * @param memory its limits; without them, those of the process.
 * @throws Error with the reason.
 */
export async function startThread(
  script: string,
  data: object,
  memory: ResourceLimits = {},
): Promise<Worker> {
  const { NODE_OPTIONS: _, ...env } = process.env; // they are of the process; others name the password of PostgreSQL
  const cache = getCompileCacheDir();
  const { program, eval: isText } = threadProgram(script);
  const thread = new Worker(program, {
    eval: isText,
    resourceLimits: memory,
    workerData: data,
    // Without the compile cache of this process, the thread takes 10 MiB to translate one file for itself. The
    // folder is the one that was set; in it, Node has created the cache for its version.
    env: cache === undefined ? env : { ...env, NODE_COMPILE_CACHE: dirname(cache) },
  });
  await once(thread, 'message'); // or 'error', which rejects
  return thread;
}
