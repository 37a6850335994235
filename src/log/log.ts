// Owns: the format of the log: JSON lines for programs, readable lines for people at a terminal; and the level at which
// each request is logged.
// Does not: show anything that a client sent except method, path and request id.

import { styleText } from 'node:util';
import { LOG_LEVELS, type LogLevel } from '../config.ts';
import { PROJECT } from '../project.ts';
import { printable } from '../terminal/printable.ts';
import type { Times } from '../times.ts';

/** 401 may be late on purpose (rule 29); for 503 there are lines about the unavailable store. */
const NEVER_SLOW: ReadonlySet<number> = new Set([401, 503]);

/** The styles of levels on a terminal with colours; `info` has none. */
const STYLES = { error: 'red', warn: 'yellow' } as const;

/** Takes one line at a time, its line end included. */
export interface Destination {
  write(line: string): void;
  readonly lost?: number;
}

type Level = 'info' | 'warn' | 'error';

type Fields = Readonly<Record<string, unknown>>;

/** Logs a message, with fields; `err` is an error. */
interface Write {
  (message: string): void;
  (fields: Fields, message: string): void;
}

export interface Log extends Readonly<Record<Level, Write>> {
  /**
   * Logs that a request was answered, in one line: at `info`; a slow one at `warn`, a fault of the service at `error`.
   * @param id of letters, digits, `_`, `.`, `:` and `-`.
   * @param milliseconds until the answer was ready; the client may take longer to read it.
   */
  request(id: string, method: string, url: string, status: number, milliseconds: number): void;
  linesLost(): number;
}

/** @param format makes another line of a JSON line. */
export function createLog(
  least: LogLevel,
  destination: Destination,
  { slow, slowLinesApart }: Times['log'],
  format = (line: string) => line,
): Log {
  const enabled = new Set(least === 'silent' ? [] : LOG_LEVELS.slice(0, LOG_LEVELS.indexOf(least) + 1));
  const writer = (level: Level): Write => {
    return (first: string | Fields, message = first) => {
      if (!enabled.has(level)) return;
      const { err, ...fields }: Fields = typeof first === 'string' ? {} : first;
      const shown = { ...fields, err: err && shownError(err as Error), msg: message };
      destination.write(format(`${JSON.stringify({ level, time: isoTime(), ...shown })}\n`));
    };
  };
  let nextSlow = 0;
  return {
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
    linesLost: () => destination.lost ?? 0,
    /** Puts its lines together by itself: an object and its JSON would take several times as long. */
    request(id, method, url, status, milliseconds) {
      let level: Level = 'info';
      let message = 'request';
      if (status === 500) {
        level = 'error';
      } else if (milliseconds >= slow && !NEVER_SLOW.has(status) && performance.now() >= nextSlow) {
        nextSlow = performance.now() + slowLinesApart;
        level = 'warn';
        message = 'slow request';
      }
      if (!enabled.has(level)) return;
      const query = url.indexOf('?');
      const path = JSON.stringify(query === -1 ? url : url.slice(0, query));
      const rounded = Math.round(milliseconds * 100) / 100;
      const line = `{"level":"${level}","time":"${isoTime()}","reqId":"${id}","method":"${method}","path":${path},"status":${status},"milliseconds":${rounded},"msg":"${message}"}\n`;
      destination.write(format(line));
    },
  };
}

/** An error with the place where it arose: its calls, innermost first, with paths inside the project. */
function shownError({ name, message, stack = '' }: Error): object {
  const calls = stack.split('\n').filter((line) => line.startsWith('    at '));
  return { name, message, stack: calls.map((call) => call.trim().replace(PROJECT.href, '')) };
}

let latest = 0;
let latestText = '';

/** A date is formatted once a millisecond, for all lines in it. */
function isoTime(): string {
  const now = Date.now();
  if (now !== latest) {
    latest = now;
    latestText = new Date(now).toISOString();
  }
  return latestText;
}

/** Makes a line for people of a JSON line: time, level, message, then all other fields. */
export function readable(line: string): string {
  const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const details = Object.entries(rest).map(([name, value]) => {
    return printable(`${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
  });
  const clock = styleText('dim', String(time).slice(11, 23)); // hh:mm:ss.sss, UTC
  const head = printable(`${String(level).padEnd(5)}  ${msg}`);
  const style = STYLES[level as keyof typeof STYLES];
  return `${[clock, style === undefined ? head : styleText(style, head), ...details].join('  ')}\n`;
}
