// Owns: the form of the log. JSON lines for programs, one readable line each for people at a terminal; and how
// loud each request is said.
// Refuses to show anything a client sent but method, path and the name of its request.

import { styleText } from 'node:util';
import pino, { type DestinationStream, type Logger } from 'pino';
import type { LogLevel } from '../config.ts';

/** Milliseconds to its answer from which on a request is called slow. */
const SLOW = 1000;

/** Milliseconds between two lines that say so: when a store is slow all requests are, and louder than the rest. */
const SLOW_LINES_APART = 1000;

/** Late on purpose (rule 29), and the lines about an unavailable store speak for all requests that meet it. */
const NEVER_SLOW: ReadonlySet<number> = new Set([401, 503]);

/** The folder of the project, as a stack names it. */
const PROJECT = new URL('../..', import.meta.url).href;

/** The styles of levels on a terminal; `info` has none. */
const STYLES = { fatal: 'red', error: 'red', warn: 'yellow', debug: 'dim', trace: 'dim' } as const;

/**
 * Says that a request was answered. A line each, at `info`; a slow one at `warn`, a fault of ours at `error`.
 * @param id of letters, digits, `_`, `.`, `:` and `-`.
 * @param milliseconds until the answer was ready; its reader may take longer.
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
 * @param linesLost tells how many of them nobody took in time.
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

/** Where an error arose: its calls, innermost first, in files of the project. */
function placesOf(stack = ''): string[] {
  const calls = stack.split('\n').filter((line) => line.startsWith('    at '));
  return calls.map((call) => call.trim().replace(PROJECT, ''));
}

/** Writes its lines by itself: through the logger, they took a fifth of all reads. */
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

/** A date is written once a millisecond, for all lines of it. */
function isoTime(): string {
  const now = Date.now();
  if (now !== latest) {
    latest = now;
    latestText = new Date(now).toISOString();
  }
  return latestText;
}

/**
 * Turns JSON lines into lines for people: time, level, message, then whatever else there is.
 * @param colours whether to tell levels apart by them.
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
