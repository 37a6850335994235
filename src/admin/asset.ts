// Owns: the answers with a file of the project on the operations listener, and the headers that make it safe to open.

import { createHash } from 'node:crypto';
import type { Answer } from '../http/answer.ts';
import type { Request } from '../http/request.ts';
import { GUARDS } from '../page/files.ts';
import { readProjectFile } from '../project.ts';

/** Answers a GET of one path. */
export type OperationsHandler = (request: Request) => Answer | Promise<Answer>;

interface Asset {
  readonly bytes: Buffer;
  readonly etag: string;
}

/**
 * Answers with a file, which is read when it is first asked for.
 * @param file path in the project.
 * @param type its media type, as the header has it.
 * @param policyFor the content policy, by the header Host of the request.
 */
export function assetHandler(
  file: string,
  type: string,
  policyFor: (host: string | undefined) => string,
): OperationsHandler {
  let asset: Promise<Asset> | undefined;
  return async ({ headers: { host, 'if-none-match': known } }) => {
    asset ??= load(file).catch((error) => {
      asset = undefined; // too many files were open at that moment, for example
      throw error;
    });
    const { bytes, etag } = await asset;
    const headers = [
      ...['content-type', type],
      ...['content-security-policy', policyFor(host)],
      ...GUARDS,
      ...['cache-control', 'no-cache'], // that is: check each time whether it has changed
      ...['etag', etag],
    ];
    return known === etag ? { status: 304, headers } : { status: 200, headers, body: bytes };
  };
}

async function load(file: string): Promise<Asset> {
  const bytes = await readProjectFile(file);
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
}
