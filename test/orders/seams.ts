// Owns: the list of the places where the order of events matters and is not ours: each with the property that must hold in
// every order.

import type fc from 'fast-check';
import { batches } from './batches.ts';
import { changes } from './changes.ts';
import { lockedBooks } from './locked-books.ts';
import { openLists } from './open-lists.ts';
import { page } from './page.ts';

export const SEAMS: Readonly<Record<string, fc.IAsyncProperty<unknown>>> = {
  'calls in batches': batches,
  'changes on PostgreSQL': changes,
  'books that others have locked': lockedBooks,
  'open lists': openLists,
  'edits, deletions and undoing on the page': page,
};
