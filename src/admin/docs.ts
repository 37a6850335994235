// Owns: /docs of the operations listener, the page that shows the API and calls the running service.
// Does not: load anything from elsewhere: the page needs no other network, and may call only the two ports. It has no token
// until a user logs in there, and stores it nowhere.

import { policyOf } from '../page/files.ts';
import { assetHandler, type OperationsHandler } from './asset.ts';

const SWAGGER = 'node_modules/swagger-ui-dist';

/** The files of the page: URL, place and media type of each. */
const ASSETS = [
  { url: '/docs', file: 'src/admin/page/docs.html', type: 'text/html' },
  { url: '/docs/docs.js', file: 'src/admin/page/docs.js', type: 'text/javascript' },
  { url: '/docs/swagger-ui.css', file: `${SWAGGER}/swagger-ui.css`, type: 'text/css' },
  { url: '/docs/swagger-ui.js', file: `${SWAGGER}/swagger-ui-bundle.js`, type: 'text/javascript' },
];

const JSON_HEADERS = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store'];

/**
 * @param servicePort port of the service; 0 until the system has chosen it.
 * @param pagePort that of the page for librarians; undefined without a page, or before it is open.
 * @param manual path of the manual, for a link to it; undefined without one.
 */
export function docsRoutes(
  servicePort: () => number,
  pagePort: () => number | undefined,
  manual: string | undefined,
): Readonly<Record<string, OperationsHandler>> {
  return {
    '/': () => ({ status: 302, headers: ['location', 'docs'], body: '' }),
    '/docs/page.json': () => {
      return { status: 200, headers: JSON_HEADERS, body: JSON.stringify({ port: pagePort(), manual }) };
    },
    ...Object.fromEntries(
      ASSETS.map(({ url, file, type }) => [
        url,
        assetHandler(file, `${type}; charset=utf-8`, (host) => contentPolicy(host, servicePort())),
      ]),
    ),
  };
}

/** Only files from this port run, and they may call only it and the service, on the host that the page came from. */
function contentPolicy(asked = '', servicePort: number): string {
  const [, name, address] = /^(?:([\w.-]+)|(\[[\da-f:.]+\]))(?::\d+)?$/i.exec(asked) ?? [];
  const host = address === undefined ? name : '*'; // a policy cannot name an IPv6 address
  const service = host && servicePort > 0 ? ` http://${host}:${servicePort}` : '';
  return policyOf(service);
}
