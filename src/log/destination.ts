// Owns: where the log goes: a terminal, a pipe or a file. A slow or absent reader never delays the service.

import { constants, openSync, write, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import type { LogLevel } from '../config.ts';
import type { Times } from '../times.ts';
import { within } from '../within.ts';
import { createLog, type Log, readable } from './log.ts';

/** Bytes of log that may wait for a slow reader; lines beyond them are lost. */
const BACKLOG = 8 * 1024 * 1024;

/**
 * Bytes of one write; there is at most one write in a turn of the event loop. If several processes write to one pipe,
 * it must take each write as a whole, or their lines would mix.
 */
const PIECE = { alone: 64 * 1024, shared: 4096 };

/** Standard output, read by people at a terminal or by a program. */
export interface LogTarget {
  readonly fd: number;
  readonly isTTY: boolean;
}

/** Writes the log. A reader that stalls or has gone loses lines, and the service does not wait for it. */
export class LogWriter {
  readonly #piece: number;
  readonly #fd: number;
  readonly #times: Times['log'];
  /** Lines lost so far. */
  lost = 0;
  /** Lines that wait for others. */
  #text = '';
  /** Keeps the pieces that are not written yet. */
  readonly #output = new Writable({
    highWaterMark: 1, // so that `drain` means that all pieces are written
    write: (piece: Buffer, _encoding, written) => this.#writePiece(piece, written),
  });
  /** For a process that ends by a fault, without time for `close`. If the reader is slow, these lines are lost. */
  readonly #writeRest = () => {
    if (this.#output.writableLength > 0) return;
    try {
      writeSync(this.#fd, this.#text);
    } catch {} // nobody reads any more
  };

  /** @param shared whether other processes write to the same output. */
  constructor({ fd, isTTY }: LogTarget, shared: boolean, times: Times['log']) {
    this.#piece = shared ? PIECE.shared : PIECE.alone;
    this.#fd = isTTY ? openTerminal(fd) : fd;
    this.#times = times;
    process.on('exit', this.#writeRest);
  }

  /** Calls back whenever everything so far has been written. */
  onDrain(act: () => void): void {
    this.#output.on('drain', act);
  }

  /** @param text whole lines; after `close` they are ignored. */
  write(text: string): void {
    if (this.#output.writableEnded) return;
    if (this.#text === '') setTimeout(() => this.#send(), this.#times.gathering);
    else if (this.#text.length + text.length > this.#piece) this.#send();
    this.#text += text;
  }

  /** Waits for the last lines to be written, but not for long; then the process may end without them. */
  async close(): Promise<void> {
    this.#send();
    process.off('exit', this.#writeRest);
    await within(this.#times.farewell, new Promise<void>((resolve) => this.#output.end(resolve)));
  }

  #send(): void {
    const piece = Buffer.from(this.#text);
    if (this.#output.writableLength + piece.length > BACKLOG) this.lost += this.#text.split('\n').length - 1;
    else if (piece.length > 0) this.#output.write(piece);
    this.#text = '';
  }

  /** In a thread of Node's pool, which may wait for the reader. */
  #writePiece(piece: Buffer, written: () => void): void {
    write(this.#fd, piece, (error, bytes) => {
      const again = () => this.#writePiece(piece.subarray(bytes), written);
      if (error)
        setTimeout(again, this.#times.retryPause).unref(); // a full pipe or disk, or nobody reads any more
      else if (bytes < piece.length) again();
      else written();
    });
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
  const log = createLog(level, lines, times, stdout.isTTY ? readable : undefined);
  let reported = 0;
  lines.onDrain(() => {
    const count = lines.lost - reported;
    if (count === 0) return;
    reported += count;
    log.error({ lines: count }, 'log lines were lost: the output is not read fast enough');
  });
  return log;
}
