// Owns: where the log goes: a terminal, a pipe or a file. A slow or absent reader never delays the service.

import { constants, openSync, write, writeSync } from 'node:fs';
import type { LogLevel } from '../config.ts';
import type { Times } from '../times.ts';
import { within } from '../within.ts';
import { createLog, type Log, readableLines } from './log.ts';

/** Bytes of log that may wait for a slow reader. */
const LOG_BACKLOG = 8 * 1024 * 1024;

/**
 * Bytes of one write; there is at most one write in a turn of the event loop. If several processes write to one pipe,
 * it must take each write as a whole, or their lines would mix.
 */
const PIECE = { alone: 64 * 1024, shared: 4096 };

/** Standard output, read by people at a terminal or by a program. */
export interface LogTarget {
  readonly fd: number;
  readonly isTTY: boolean;
  /** Only a terminal has it; NO_COLOR and the abilities of the terminal decide. */
  hasColors?(): boolean;
}

/** Writes the log. A reader that stalls or has gone loses lines, and the service does not wait for it. */
export class LogWriter {
  readonly #piece: number;
  readonly #fd: number;
  readonly #times: Times['log'];
  /** Lines that wait for others. */
  #text = '';
  /** The pieces that are not written yet; the first one is being written. */
  readonly #waiting: Buffer[] = [];
  #backlog = 0; // bytes of them
  #lost = 0;
  #closed = false;
  #onDrain = () => {};
  readonly #writeRest = () => this.#writeAtExit();

  /** @param shared whether other processes write to the same output. */
  constructor({ fd, isTTY }: LogTarget, shared: boolean, times: Times['log']) {
    this.#piece = shared ? PIECE.shared : PIECE.alone;
    this.#fd = isTTY ? openTerminal(fd) : fd;
    this.#times = times;
    process.on('exit', this.#writeRest);
  }

  /** Lines lost so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Calls back whenever everything so far has been written. */
  onDrain(act: () => void): void {
    this.#onDrain = act;
  }

  /** @param text whole lines; after `close` they are ignored. */
  write(text: string): void {
    if (this.#closed) return;
    if (this.#text === '') setTimeout(() => this.#send(), this.#times.gathering);
    else if (this.#text.length + text.length > this.#piece) this.#send();
    this.#text += text;
  }

  /** Waits for the last lines to be written, but not for long; then the process may end without them. */
  async close(): Promise<void> {
    this.#send();
    this.#closed = true;
    process.off('exit', this.#writeRest);
    const written = new Promise<void>((resolve) => this.onDrain(resolve));
    if (this.#waiting.length > 0) await within(this.#times.farewell, written);
  }

  #send(): void {
    if (this.#text === '') return;
    const text = this.#text;
    const piece = Buffer.from(text);
    this.#text = '';
    if (this.#backlog + piece.length > LOG_BACKLOG) {
      this.#lost += text.split('\n').length - 1;
      return;
    }
    this.#backlog += piece.length;
    if (this.#waiting.push(piece) === 1) this.#writeNext();
  }

  /** In a thread of Node's pool, which may wait for the reader. */
  #writeNext(): void {
    const [piece] = this.#waiting;
    if (piece === undefined) {
      this.#onDrain();
      return;
    }
    write(this.#fd, piece, (error, bytes) => {
      if (error) {
        setTimeout(() => this.#writeNext(), this.#times.retryPause).unref(); // a full pipe or disk, or nobody reads any more
        return;
      }
      this.#backlog -= bytes;
      if (bytes < piece.length) this.#waiting[0] = piece.subarray(bytes);
      else this.#waiting.shift();
      this.#writeNext();
    });
  }

  /** For a process that ends by a fault, without time for `close`. If the reader is slow, these lines are lost. */
  #writeAtExit(): void {
    if (this.#waiting.length > 0) return;
    try {
      writeSync(this.#fd, this.#text);
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
export function openLog(level: LogLevel, lines: LogWriter, stdout: LogTarget, times: Times['log']): Log {
  const readable = () => readableLines((text) => lines.write(text), stdout.hasColors?.() ?? false);
  const log = createLog(level, stdout.isTTY ? readable() : lines, times, () => lines.lost);
  let reported = 0;
  lines.onDrain(() => {
    const count = lines.lost - reported;
    if (count === 0) return;
    reported += count;
    log.error({ lines: count }, 'log lines were lost: the output is not read fast enough');
  });
  return log;
}
