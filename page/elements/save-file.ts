// Owns: having the browser save a file.

import { make } from './dom.ts';

/** Milliseconds for which a file's URL is kept: a browser may ask a person first where to save it. */
const KEPT = 60_000;

export function saveFile(file: File): void {
  const url = URL.createObjectURL(file);
  make('a', { href: url, download: file.name }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT);
}
