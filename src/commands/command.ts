// Owns: what a command is, and what surrounds it.

import type { Readable } from 'node:stream';
import type { Environment } from '../config.ts';

export interface CommandContext {
  readonly env: Environment;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WriteStream & { readonly fd: number };
  readonly stderr: NodeJS.WriteStream;
  /** Resolves when the process is asked to end. */
  readonly stop: Promise<unknown>;
}

/** What follows the name of a command. */
export interface Arguments {
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly operands: readonly string[];
}

export interface Command {
  /** What `--help` prints. */
  readonly HELP: string;
  /** Its options beside `--help`, none if absent; any of them may be left out. */
  readonly OPTIONS?: Readonly<Record<string, { readonly type: 'string' | 'boolean' }>>;
  /** The names of its operands, as HELP has them: one in brackets may be left out. None if absent. */
  readonly OPERANDS?: readonly string[];
  /**
   * @returns the exit code.
   * @throws OperatorError, whose sentence is for stderr, to end with 1; UsageError, to end with 2.
   */
  run(context: CommandContext, args: Arguments): Promise<number>;
}

/** The command was called with what cannot be meant. The message is the sentence that the caller reads. */
export class UsageError extends Error {}
