// Owns: the description of the API, with the address of this service in it.

import { readFile } from 'node:fs/promises';

const DOCUMENT = new URL('../../docs/openapi/openapi.json', import.meta.url);

/**
 * The OpenAPI document as JSON.
 * @param serverUrl URL of the service's port, for the readers of the document.
 */
export async function describeApi(serverUrl: string): Promise<string> {
  const document = JSON.parse(await readFile(DOCUMENT, 'utf8'));
  document.servers[0].url = serverUrl;
  return JSON.stringify(document);
}
