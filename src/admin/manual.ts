// Owns: /manual of the operations listener: the documents of this version as a site, if `npm run build:site` has made it.
// Does not: serve any path outside a fixed list: no part of a URL becomes the name of a file.

import { extname } from 'node:path';
import { reasonOf } from '../error-words.ts';
import type { Log } from '../log/log.ts';
import { policyOf } from '../page/files.ts';
import { projectFiles } from '../project.ts';
import { version } from '../version.ts';
import { assetHandler, type OperationsHandler } from './asset.ts';

/** Where `npm run build:site` puts the site of this version, as a path in the project. */
const SITE = `site/dist/${version}`;

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
};

/** @returns no route if the site has not been made, or cannot be read. */
export async function manualRoutes(log: Log): Promise<Readonly<Record<string, OperationsHandler>>> {
  const routes: Record<string, OperationsHandler> = {};
  const files = await projectFiles(SITE).catch((error) => {
    log.warn(`${SITE} cannot be read: ${reasonOf(error)}. The service runs without the manual.`);
    return [];
  });
  for (const file of files) {
    const type = TYPES[extname(file)] ?? 'application/octet-stream'; // documents must not keep the service from starting
    const path = file.replace(SITE, '/manual').replace(/\/index\.html$/, '/');
    routes[path] = assetHandler(file, type, () => policyOf(''));
  }
  if ('/manual/' in routes)
    routes['/manual'] = () => ({ status: 302, headers: ['location', 'manual/'], body: '' });
  return routes;
}
