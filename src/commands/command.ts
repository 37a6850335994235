// Owns: the interface of a command, and the context in which it runs.

import type { Readable } from 'node:stream';
import type { Environment } from '../environment.ts';
import type { Times } from '../times.ts';

export interface CommandContext {
  readonly env: Environment;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WriteStream & { readonly fd: number };
  readonly stderr: NodeJS.WriteStream;
  /** Resolves when the process is asked to end. */
  readonly stop: Promise<unknown>;
  /** Aborts when the process is asked to end. */
  readonly signal: AbortSignal;
  readonly times: Times;
}

/** The arguments after the name of a command. */
export interface Arguments {
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly operands: readonly string[];
}

export interface Command {
  /** What `--help` prints. */
  readonly HELP: string;
  /** Its options besides `--help`; none if absent. All of them are optional. */
  readonly OPTIONS?: Readonly<Record<string, { readonly type: 'string' | 'boolean' }>>;
  /** The names of its operands, as in HELP; one in brackets is optional. None if absent. */
  readonly OPERANDS?: readonly string[];
  /**
   * @returns the exit code.
   * @throws OperatorError for exit code 1, UsageError for exit code 2; the message of either goes to stderr.
   */
  run(context: CommandContext, args: Arguments): Promise<number>;
}

/** The arguments of a command are invalid. The message is the sentence that the user reads. */
export class UsageError extends Error {}
