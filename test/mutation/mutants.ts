// Owns: the list of all mutants.

import { API_MUTANTS } from './api.ts';
import { CONFORMANCE_MUTANTS } from './conformance.ts';
import { CONTRACT_MUTANTS } from './contract.ts';
import { FIND_MUTANTS } from './find.ts';
import { LIBRARIAN_MUTANTS } from './librarian.ts';
import { LOG_MUTANTS } from './log.ts';
import type { Mutant } from './mutant.ts';
import { ORDERS_MUTANTS } from './orders.ts';
import { PAGE_MUTANTS } from './page.ts';
import { PROCESS_MUTANTS } from './process.ts';
import { STORES_MUTANTS } from './stores.ts';
import { TOGETHER_MUTANTS } from './together.ts';
import { TRANSFER_MUTANTS } from './transfer.ts';

export const MUTANTS: readonly Mutant[] = [
  ...CONTRACT_MUTANTS,
  ...API_MUTANTS,
  ...FIND_MUTANTS,
  ...TOGETHER_MUTANTS,
  ...LOG_MUTANTS,
  ...STORES_MUTANTS,
  ...PROCESS_MUTANTS,
  ...ORDERS_MUTANTS,
  ...PAGE_MUTANTS,
  ...LIBRARIAN_MUTANTS,
  ...CONFORMANCE_MUTANTS,
  ...TRANSFER_MUTANTS,
];
