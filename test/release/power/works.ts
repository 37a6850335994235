// Owns: the list of the kinds of work during which the power fails.

import { backedUp, backedUpAnew, copied, exported, imported, indexed, restored } from './commands.ts';
import { arrays, emptied, failing, singly, started, together } from './served.ts';
import type { Work } from './work.ts';

export const WORKS: Readonly<Record<string, Work>> = {
  'single writes': singly,
  'concurrent writes': together,
  'arrays of books': arrays,
  'a log that is emptied': emptied,
  'syncs that fail': failing,
  starts: started,
  'an import': imported,
  'an index': indexed,
  'a backup': backedUpAnew,
  'a backup in place of another file': backedUp,
  'a restore': restored,
  'a copy': copied,
  'an export': exported,
};
