// Owns: which import the file of a request belongs to: a new one, one that was interrupted, or that of an earlier request with its key
// (rule M7).

import type { LogWriter } from '../books/change-log.ts';
import type { KeptImport } from '../books/kept-imports.ts';
import { isHeld } from './known.ts';
import type { ImportReport } from './summary.ts';

/** The file of a request. */
export interface Beginning {
  /** Of a request that takes effect once. */
  readonly key: string | undefined;
  readonly fingerprint: string;
  /** A name of this process that no other has. */
  readonly owner: string;
  /** As it is before the import. */
  readonly report: ImportReport;
  /** Milliseconds after which a process that was not seen is gone. */
  readonly lost: number;
}

/**
 * Within a transaction, begins an import for this process, or takes one over.
 * @returns its number, and whether it has its file already; `conflict` if the key was used for another file, `unknown` if its import
 *   is no longer kept.
 */
export async function beginIn(
  log: LogWriter,
  { key, fingerprint, owner, report, lost }: Beginning,
): Promise<{ readonly number: number; readonly isReplay: boolean } | 'conflict' | 'unknown'> {
  const isNewKey = key !== undefined && (await log.claim({ key, fingerprint }));
  const known = key === undefined || isNewKey ? undefined : await ofKey(log, key, fingerprint);
  if (typeof known === 'string') return known;
  const found = known === undefined && !report.dryRun ? await log.imports.unfinished(fingerprint) : known;
  // A new key may mean the same books once more, unless that import was interrupted.
  const other = isNewKey && found !== undefined && isHeld(found, lost) ? undefined : found;
  if (other !== undefined) {
    // With other options, the rows that are done with would be other ones.
    const isOther = other.books > 0 && other.fingerprint !== fingerprint;
    if (isOther || isHeld(other, lost)) return { number: other.number, isReplay: true };
    await log.imports.take(other.number, owner);
  }
  const number = other?.number ?? (await log.imports.begin(fingerprint, owner));
  await log.imports.keep(number, owner, { report, fingerprint });
  if (key !== undefined) await log.keep(key, [number]);
  return { number, isReplay: false };
}

async function ofKey(
  log: LogWriter,
  key: string,
  fingerprint: string,
): Promise<KeptImport | 'conflict' | 'unknown'> {
  const known = await log.known(key);
  if (known?.fingerprint !== fingerprint) return 'conflict';
  return (await log.imports.find(Number(known.ids[0]))) ?? 'unknown';
}
