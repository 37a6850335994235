// Owns: where the log goes: a terminal, a pipe or a file. A slow or absent reader never delays the service.

import { constants, openSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pino from 'pino';
import type { LogLevel } from '../config.ts';
import { createLog, type Log, readableLines } from './log.ts';

/** Bytes of log that may wait for a slow reader. */
const LOG_BACKLOG = 8 * 1024 * 1024;

/**
 * Bytes of one write; there is at most one write in a turn of the event loop. If several processes write to one pipe,
 * it must take each write as a whole, or their lines would mix.
 */
const PIECE = { alone: 64 * 1024, shared: 4096 };

/** Milliseconds that a line waits for others: writing each line alone cost a quarter of the reads per second. */
const GATHERING = 10;

/** Milliseconds for writing the last lines of the log. */
const LOG_FAREWELL = 1000;

/** Standard output, read by people at a terminal or by a program. */
export interface LogTarget {
  readonly fd: number;
  readonly isTTY: boolean;
  /** Only a terminal has it; NO_COLOR and the abilities of the terminal decide. */
  hasColors?(): boolean;
}

/** Writes the log. A reader that stalls or has gone loses lines, and the service does not wait for it. */
export class LogWriter {
  readonly #output;
  /** Lines that wait for others. */
  #text = '';
  #lost = 0;
  /** Whether everything that was passed to `#output` has been written. */
  #isDrained = true;
  #closed = false;
  readonly #piece: number;
  readonly #fd: number;

  /** @param shared whether other processes write to the same output. */
  constructor({ fd, isTTY }: LogTarget, shared: boolean) {
    this.#piece = shared ? PIECE.shared : PIECE.alone;
    this.#fd = isTTY ? openTerminal(fd) : fd;
    this.#output = pino.destination({
      fd: this.#fd,
      sync: false,
      maxLength: LOG_BACKLOG,
      maxWrite: this.#piece,
    });
    this.#output.on('error', () => {}); // a full disk, for example: the service goes on without its log
    this.#output.flushSync = () => this.#writeRest(); // called at exit; sonic-boom's own would retry forever
    this.#output.on('drain', () => {
      this.#isDrained = true;
    });
    this.#output.on('drop', (text: string) => {
      this.#lost += text.split('\n').length - 1;
    });
  }

  /** Lines lost so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Calls back whenever everything so far has been written. */
  onDrain(act: () => void): void {
    this.#output.on('drain', act);
  }

  /** @param text whole lines; after `close` they are ignored. */
  write(text: string): void {
    if (this.#closed) return;
    if (this.#text === '') setTimeout(() => this.#send(), GATHERING);
    else if (this.#text.length + text.length > this.#piece) this.#send();
    this.#text += text;
  }

  /** Waits for the last lines to be written, but not for long; then the process may end without them. */
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

  /** For a process that ends by a fault, without time for `close`. If the reader is slow, these lines are lost. */
  #writeRest(): void {
    if (this.#closed || !this.#isDrained) return;
    try {
      writeSync(this.#fd, this.#text);
      this.#text = '';
    } catch {} // nobody reads any more
  }
}

/** Without blocking: a stopped terminal (Ctrl-S) would block every writer, including Node's own stream. */
function openTerminal(fd: number): number {
  try {
    const { O_WRONLY, O_APPEND, O_NOCTTY, O_NONBLOCK } = constants;
    return openSync(`/dev/fd/${fd}`, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK);
  } catch {
    return fd; // it belongs to another user, for example
  }
}

/** The log, in the format for its reader. Lost lines are reported once later lines have been written. */
export function openLog(level: LogLevel, lines: LogWriter, stdout: LogTarget): Log {
  const readable = () => readableLines((text) => lines.write(text), stdout.hasColors?.() ?? false);
  const log = createLog(level, stdout.isTTY ? readable() : lines, () => lines.lost);
  let reported = 0;
  lines.onDrain(() => {
    const count = lines.lost - reported;
    if (count === 0) return;
    reported += count;
    log.error({ lines: count }, 'log lines were lost: the output is not read fast enough');
  });
  return log;
}
