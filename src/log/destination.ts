// Owns: where the log goes. A terminal, a pipe or a file; whoever reads there, or no longer does, holds
// nobody up.

import { constants, openSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pino from 'pino';
import type { LogLevel } from '../config.ts';
import { createLog, type Log, readableLines } from './log.ts';

/** Bytes of log that may wait for a slow reader. */
const LOG_BACKLOG = 8 * 1024 * 1024;

/**
 * Bytes that leave in one piece, one a turn of the event loop at most. Where several processes write into one
 * pipe, it has to take each piece whole, or their lines would mix.
 */
const PIECE = { alone: 64 * 1024, shared: 4096 };

/** Milliseconds that a line waits for others, to leave with them: one by one they took a quarter of all reads. */
const GATHERING = 10;

/** Milliseconds that the last lines of the log have to leave. */
const LOG_FAREWELL = 1000;

/** Standard output: people at a terminal, or a program. */
export interface LogTarget {
  readonly fd: number;
  readonly isTTY: boolean;
  /** Only a terminal has it; NO_COLOR and what the terminal can show decide. */
  hasColors?(): boolean;
}

/** Where the log goes. A reader that stalls or has gone loses lines and holds nobody up. */
export class LogWriter {
  readonly #output;
  /** Lines that wait for others. */
  #text = '';
  #lost = 0;
  /** Whether everything that was handed on has left. */
  #isDrained = true;
  #closed = false;
  readonly #piece: number;
  readonly #fd: number;

  /** @param shared whether other processes write there, too. */
  constructor({ fd, isTTY }: LogTarget, shared: boolean) {
    this.#piece = shared ? PIECE.shared : PIECE.alone;
    this.#fd = isTTY ? openTerminal(fd) : fd;
    this.#output = pino.destination({
      fd: this.#fd,
      sync: false,
      maxLength: LOG_BACKLOG,
      maxWrite: this.#piece,
    });
    this.#output.on('error', () => {}); // a full disk, say: the service is worth more than its log
    this.#output.flushSync = () => this.#writeRest(); // called at exit; sonic-boom's own would try for ever
    this.#output.on('drain', () => {
      this.#isDrained = true;
    });
    this.#output.on('drop', (text: string) => {
      this.#lost += text.split('\n').length - 1;
    });
  }

  /** How many were lost so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Calls back whenever everything said so far has left. */
  onDrain(act: () => void): void {
    this.#output.on('drain', act);
  }

  /** @param text of whole lines; nothing that is said after `close` leaves. */
  write(text: string): void {
    if (this.#closed) return;
    if (this.#text === '') setTimeout(() => this.#send(), GATHERING);
    else if (this.#text.length + text.length > this.#piece) this.#send();
    this.#text += text;
  }

  /** Gives what is left a moment to leave; then the process may end without it. */
  async close(): Promise<void> {
    this.#send();
    this.#closed = true;
    const left = new Promise((resolve) => this.#output.once('close', resolve));
    this.#output.end();
    await Promise.race([left, pause(LOG_FAREWELL, undefined)]);
  }

  #send(): void {
    if (this.#text === '') return;
    this.#isDrained = false;
    this.#output.write(this.#text);
    this.#text = '';
  }

  /** A process that ends by a fault has no time for `close`. Where a reader is slow, these lines are lost. */
  #writeRest(): void {
    if (this.#closed || !this.#isDrained) return;
    try {
      writeSync(this.#fd, this.#text);
      this.#text = '';
    } catch {} // nobody reads any more
  }
}

/** A terminal that is stopped (Ctrl-S) would hold up whoever writes to it, Node's own stream included. */
function openTerminal(fd: number): number {
  try {
    const { O_WRONLY, O_APPEND, O_NOCTTY, O_NONBLOCK } = constants;
    return openSync(`/dev/fd/${fd}`, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK);
  } catch {
    return fd; // it belongs to another user, say
  }
}

/** The log, in the form that its reader understands. Lines that were lost are told of once others get through. */
export function openLog(level: LogLevel, lines: LogWriter, stdout: LogTarget): Log {
  const readable = () => readableLines((text) => lines.write(text), stdout.hasColors?.() ?? false);
  const log = createLog(level, stdout.isTTY ? readable() : lines, () => lines.lost);
  let told = 0;
  lines.onDrain(() => {
    const count = lines.lost - told;
    if (count === 0) return;
    told += count;
    log.error({ lines: count }, 'lines of the log were lost, since nobody read them');
  });
  return log;
}
