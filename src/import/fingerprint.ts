// Owns: the fingerprint of an import: equal for the same file with the same options, read by the same version of the service.

import { type Hash, hash } from 'node:crypto';
import type { ReadingOptions } from '../files/format.ts';
import type { LoadRules } from '../stores/load.ts';
import { version } from '../version.ts';

/** @param content of the whole file. */
export function fingerprintOf(
  content: Hash,
  { name: _, ...options }: ReadingOptions,
  rules: LoadRules,
): string {
  return hash('sha256', JSON.stringify([content.digest('hex'), options, rules, version]), 'base64url');
}
