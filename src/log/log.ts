// Owns: the format of the log: JSON lines for programs, readable lines for people at a terminal; and the level at which
// each request is logged.
// Does not: show anything that a client sent except method, path and request id.

import { styleText } from 'node:util';
import { LOG_LEVELS, type LogLevel } from '../config.ts';
import { PROJECT } from '../project.ts';
import type { Times } from '../times.ts';

/** 401 may be late on purpose (rule 29); for 503 there are lines about the unavailable store. */
const NEVER_SLOW: ReadonlySet<number> = new Set([401, 503]);

/** The styles of levels on a terminal; `info` has none. */
const STYLES = { error: 'red', warn: 'yellow' } as const;

/**
 * Logs that a request was answered, in one line: at `info`; a slow one at `warn`, a fault of the service at `error`.
 * @param id of letters, digits, `_`, `.`, `:` and `-`.
 * @param milliseconds until the answer was ready; the client may take longer to read it.
 */
export type LogRequest = (
  id: string,
  method: string,
  url: string,
  status: number,
  milliseconds: number,
) => void;

/** Takes lines, their line ends included. */
export interface Destination {
  write(line: string): void;
}

type Level = 'info' | 'warn' | 'error';

type Fields = Readonly<Record<string, unknown>>;

/** Logs a message, with fields; `err` is an error. */
interface Write {
  (message: string): void;
  (fields: Fields, message: string): void;
}

export interface Log extends Readonly<Record<Level, Write>> {
  readonly request: LogRequest;
  /** How many lines were lost. */
  readonly linesLost: () => number;
}

/** @param destination takes one line at a time. */
export function createLog(
  least: LogLevel,
  destination: Destination,
  times: Times['log'],
  linesLost = () => 0,
): Log {
  const enabled = new Set(least === 'silent' ? [] : LOG_LEVELS.slice(0, LOG_LEVELS.indexOf(least) + 1));
  const writer = (level: Level): Write => {
    return (first: string | Fields, message = first) => {
      if (!enabled.has(level)) return;
      const { err, ...fields }: Fields = typeof first === 'string' ? {} : first;
      const shown = { ...fields, err: err && shownError(err as Error), msg: message };
      destination.write(`${JSON.stringify({ level, time: isoTime(), ...shown })}\n`);
    };
  };
  const levels = { info: writer('info'), warn: writer('warn'), error: writer('error') };
  return { ...levels, request: requestLog(enabled, destination, times), linesLost };
}

/** An error with the place where it arose: its calls, innermost first, with paths inside the project. */
function shownError({ name, message, stack = '' }: Error): object {
  const calls = stack.split('\n').filter((line) => line.startsWith('    at '));
  return { name, message, stack: calls.map((call) => call.trim().replace(PROJECT.href, '')) };
}

/** Puts its lines together by itself: an object and its JSON would take several times as long. */
function requestLog(
  enabled: ReadonlySet<LogLevel>,
  destination: Destination,
  { slow, slowLinesApart }: Times['log'],
): LogRequest {
  let nextSlow = 0;
  return (id, method, url, status, milliseconds) => {
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
    destination.write(
      `{"level":"${level}","time":"${isoTime()}","reqId":"${id}","method":"${method}","path":${path},"status":${status},"milliseconds":${rounded},"msg":"${message}"}\n`,
    );
  };
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

/**
 * Turns JSON lines into lines for people: time, level, message, then all other fields.
 * @param colours whether levels have colours.
 */
export function readableLines(write: (text: string) => void, colours: boolean): Destination {
  const style = (format: Parameters<typeof styleText>[0], text: string) => {
    return colours ? styleText(format, text, { validateStream: false }) : text;
  };
  return {
    write(line) {
      const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
      const details = Object.entries(rest).map(([name, value]) => {
        return `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`;
      });
      const clock = style('dim', String(time).slice(11, 23)); // hh:mm:ss.sss, UTC
      const format = STYLES[level as keyof typeof STYLES];
      const head = `${String(level).padEnd(5)}  ${msg}`;
      write(`${[clock, format === undefined ? head : style(format, head), ...details].join('  ')}\n`);
    },
  };
}
