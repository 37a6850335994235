// Owns: where the log goes. A terminal, a pipe or a file; whoever reads there, or no longer does, holds
// nobody up.

import { constants, openSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import pino, { type Logger } from 'pino';
import type { LogLevel } from './config.ts';
import { createLog, readableLines } from './log.ts';

/** Bytes of log that may wait for a slow reader. */
const LOG_BACKLOG = 8 * 1024 * 1024;

/** Bytes that go into a pipe in one piece, so that the lines of several workers never mix. */
const PIPE_BUF = 4096;

/** Milliseconds that the last lines of the log have to leave. */
const LOG_FAREWELL = 1000;

export type Lines = ReturnType<typeof pino.destination>;

/** Where the log goes. A reader that stalls or has gone loses lines and holds nobody up. */
export function openLines({ fd, isTTY }: { readonly fd: number; readonly isTTY: boolean }): Lines {
  const lines = pino.destination({
    fd: isTTY ? openTerminal(fd) : fd,
    sync: false,
    maxLength: LOG_BACKLOG,
    maxWrite: PIPE_BUF,
  });
  lines.on('error', () => {}); // a full disk, say: the service is worth more than its log
  lines.flushSync = () => {}; // at exit it would try for ever; closeLines is what the last lines have
  return lines;
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
export function openLog(level: LogLevel, lines: Lines, forPeople: boolean): Logger {
  const log = createLog(level, forPeople ? readableLines((text) => lines.write(text)) : lines);
  let lost = 0;
  lines.on('drop', () => {
    lost += 1;
  });
  lines.on('drain', () => {
    if (lost === 0) return;
    const count = lost;
    lost = 0;
    log.error({ lines: count }, 'lines of the log were lost, since nobody read them');
  });
  return log;
}

/** Gives what is left of the log a moment to leave; then the process may end without it. */
export async function closeLines(lines: Lines): Promise<void> {
  const left = new Promise((resolve) => lines.once('close', resolve));
  lines.end();
  await Promise.race([left, pause(LOG_FAREWELL, undefined)]);
}
