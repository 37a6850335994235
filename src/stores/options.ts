// Owns: how a store is opened for serving.

import type { Times } from '../times.ts';

export interface OpenOptions {
  /** Whether other processes already have the store open, so that it cannot be new. */
  readonly mustExist: boolean;
  /** Whether its books can be searched; they are then indexed. */
  readonly find: boolean;
  /** Days for which rows of the log of changes are kept. */
  readonly history: number;
  readonly times: Times;
  /**
   * Called when a disk has failed to write what a transaction has committed. It ends the process: the system may have dropped
   * that, so that a second attempt would succeed and prove nothing.
   */
  onSyncFailed(reason: string): void;
}
