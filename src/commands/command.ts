// Owns: what a command is, and what surrounds it.

import type { Environment } from '../config.ts';

export interface Surroundings {
  readonly env: Environment;
  readonly stdout: NodeJS.WriteStream & { readonly fd: number };
  readonly stderr: NodeJS.WriteStream;
  /** Resolves when the process is asked to end. */
  readonly stop: Promise<unknown>;
}

export interface Command {
  /** What `--help` prints. */
  readonly HELP: string;
  /**
   * @returns the exit code.
   * @throws StartupRefusal, whose sentence is for stderr, to end with 1.
   */
  run(surroundings: Surroundings): Promise<number>;
}
