// Owns: reading a date and time of RFC 3339, but for leap seconds; and writing one.

const TIME = /^(\d{4}-\d\d-(\d\d))T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** @returns milliseconds since 1970; undefined if the text is none. */
export function readTime(text: string): number | undefined {
  const [, date, day] = TIME.exec(text) ?? [];
  const isDay = new Date(`${date}`).getUTCDate() === Number(day); // not 30 February
  const time = Date.parse(text);
  return isDay && !Number.isNaN(time) ? time : undefined;
}

/** The last moment that a date has, in milliseconds since 1970. */
const LAST = 8_640_000_000_000_000;

/** @param moment milliseconds since 1970; another program may have stored any number. */
export function writeTime(moment: number): string {
  return new Date(Math.max(-LAST, Math.min(LAST, Math.trunc(moment)))).toISOString();
}
