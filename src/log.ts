// Owns: the form of the log. JSON lines for programs, one readable line each for people at a terminal.
// Refuses to show where in the code an error came from, or anything a client sent but method and path.

import pino, { type DestinationStream, type Logger } from 'pino';
import type { LogLevel } from './config.ts';

/** @param destination takes one line at a time, its line end included. */
export function createLog(level: LogLevel, destination: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: ({ name, message }: Error) => ({ name, message }) },
    },
    destination,
  );
}

/** Turns JSON lines into lines for people: time, level, message, then whatever else there is. */
export function readableLines(write: (text: string) => void): DestinationStream {
  return {
    write(line) {
      const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
      const details = Object.entries(rest).map(([name, value]) => {
        return `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`;
      });
      const clock = String(time).slice(11, 23); // hh:mm:ss.sss, UTC
      write(`${[clock, String(level).padEnd(5), msg, ...details].join('  ')}\n`);
    },
  };
}
