// Owns: parts of the page that are separate programs, loaded when they are needed first.

import { CATALOGUE } from '../texts/catalogue.ts';
import { Complaint } from './persist.ts';
import type { Reach } from './reach.ts';

/**
 * @param name of the file beside main.js.
 * @param make makes the part from what its program exports.
 * @returns gives the part, which is made once. It throws a Complaint if the program cannot be loaded, and the next call tries again.
 */
export function loading<Program, Part>(
  reach: Reach,
  name: string,
  make: (program: Program) => Part,
): () => Promise<Part> {
  let part: Promise<Part> | undefined;
  let attempts = 0;
  const load = async () => {
    attempts += 1;
    // A browser may remember that a URL could not be loaded.
    const url = new URL(`${name}${attempts > 1 ? `?${attempts}` : ''}`, import.meta.url);
    const program: Program = await import(url.href).catch(async () => {
      const answer = await reach.fetch(url).catch(() => undefined);
      throw new Complaint(answer?.status === 404 ? CATALOGUE.oldPage : reach.reason);
    });
    return make(program);
  };
  return () => {
    part ??= load().catch((error) => {
      part = undefined;
      throw error;
    });
    return part;
  };
}
