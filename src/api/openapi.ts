// Owns: the description of the API, with the address of this service in it.

import { readProjectFile } from '../project.ts';

/**
 * The OpenAPI document as JSON.
 * @param serverUrl URL of the service's port, for the readers of the document.
 */
export async function describeApi(serverUrl: string): Promise<string> {
  const document = JSON.parse(String(await readProjectFile('docs/openapi/openapi.json')));
  document.servers[0].url = serverUrl;
  return JSON.stringify(document);
}
