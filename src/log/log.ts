// Owns: the format of the log: JSON lines for programs, readable lines for people at a terminal; and the level at which
// each request is logged.
// Refuses: to show anything that a client sent except method, path and request id.

import { styleText } from 'node:util';
import pino, { type DestinationStream, type Logger } from 'pino';
import type { LogLevel } from '../config.ts';
import { PROJECT } from '../project.ts';

/** A request is slow if its answer takes this many milliseconds or more. */
const SLOW = 1000;

/** Milliseconds between two `slow request` lines: if a store is slow, all requests are, and would flood the log. */
const SLOW_LINES_APART = 1000;

/** 401 may be late on purpose (rule 29); for 503 there are lines about the unavailable store. */
const NEVER_SLOW: ReadonlySet<number> = new Set([401, 503]);

/** The styles of levels on a terminal; `info` has none. */
const STYLES = { fatal: 'red', error: 'red', warn: 'yellow', debug: 'dim', trace: 'dim' } as const;

/**
 * Logs that a request was answered, in one line: at `info`; a slow one at `warn`, a fault of ours at `error`.
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

export type Log = Logger & { readonly request: LogRequest; readonly linesLost: () => number };

/**
 * @param destination takes one line at a time, its line end included.
 * @param linesLost returns how many of them were lost.
 */
export function createLog(level: LogLevel, destination: DestinationStream, linesLost = () => 0): Log {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${isoTime()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: ({ name, message, stack }: Error) => ({ name, message, stack: placesOf(stack) }) },
    },
    destination,
  );
  return Object.assign(logger, { request: requestLog(logger, destination), linesLost });
}

/** Where an error arose: its calls, innermost first, with paths inside the project. */
function placesOf(stack = ''): string[] {
  const calls = stack.split('\n').filter((line) => line.startsWith('    at '));
  return calls.map((call) => call.trim().replace(PROJECT.href, ''));
}

/** Writes its lines without the logger, which cost a fifth of the reads per second. */
function requestLog(logger: Logger, destination: DestinationStream): LogRequest {
  const isEnabled = {
    info: logger.isLevelEnabled('info'),
    warn: logger.isLevelEnabled('warn'),
    error: logger.isLevelEnabled('error'),
  };
  let nextSlow = 0;
  return (id, method, url, status, milliseconds) => {
    let level: keyof typeof isEnabled = 'info';
    let message = 'request';
    if (status === 500) {
      level = 'error';
    } else if (milliseconds >= SLOW && !NEVER_SLOW.has(status) && performance.now() >= nextSlow) {
      nextSlow = performance.now() + SLOW_LINES_APART;
      level = 'warn';
      message = 'slow request';
    }
    if (!isEnabled[level]) return;
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
export function readableLines(write: (text: string) => void, colours: boolean): DestinationStream {
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
