// Owns: the list of the places where the order of events matters and is not ours: each with the property that must hold in
// every order.

import type fc from 'fast-check';
import { batches } from './batches.ts';
import { changes } from './changes.ts';
import { connections } from './connections.ts';
import { openLists } from './open-lists.ts';
import { page } from './page.ts';
import { primary } from './primary.ts';
import { searches } from './searches.ts';
import { standby } from './standby.ts';
import { undos } from './undo.ts';

/** Those beneath which the driver of PostgreSQL runs: an order takes ten times as long. */
export const SLOW_SEAMS: readonly string[] = ['the choice of a primary', 'reads from a standby'];

/** Those that need neither a store nor a driver: an order takes a tenth of the time, and there are more of them. */
export const QUICK_SEAMS: readonly string[] = ['requests on connections'];

export const SEAMS: Readonly<Record<string, fc.IAsyncProperty<unknown>>> = {
  'calls in batches': batches,
  'changes on PostgreSQL': changes,
  'searches on PostgreSQL': searches,
  'undos on PostgreSQL': undos,
  'the choice of a primary': primary,
  'reads from a standby': standby,
  'open lists': openLists,
  'requests on connections': connections,
  'two librarians who change, delete and undo each other’s work lose nothing': page,
};
