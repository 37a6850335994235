// Owns: reading a file that holds a secret, once, at the start. It may be a pipe, such as a shell's `<(...)`.
// Does not: read a file without an end, or wait forever (rule 27).

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { TIMES } from './times.ts';

/** A secret is far shorter. */
const MAX_BYTES = 64 * 1024;

const { pipe, pause } = TIMES.secretFile;

/** @throws Error whose message says what is wrong with the file. */
export function readSecretFile(path: string): Uint8Array {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK); // a pipe would otherwise wait for its writer
  try {
    const isPipe = fstatSync(fd).isFIFO();
    const content = Buffer.alloc(MAX_BYTES + 1);
    const deadline = Date.now() + pipe;
    let length = 0;
    while (length <= MAX_BYTES) {
      const bytes = readSome(fd, content, length);
      const isEnd = bytes === 0 && (length > 0 || !isPipe); // a pipe also seems to end before its writer opens it
      if (isEnd) return content.subarray(0, length);
      if (bytes === undefined || bytes === 0) {
        if (Date.now() >= deadline) throw new Error(`nothing was written into it within ${pipe / 1000} s`);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
      } else {
        length += bytes;
      }
    }
    throw new Error(`it is longer than ${MAX_BYTES} bytes`);
  } finally {
    closeSync(fd);
  }
}

/** @returns the number of bytes, 0 at the end, undefined when there are none yet. */
function readSome(fd: number, content: Uint8Array, length: number): number | undefined {
  try {
    return readSync(fd, content, length, content.length - length, null);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined;
    throw error;
  }
}
