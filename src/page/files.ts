// Owns: the answers with the files of the librarians' page, and the policy under which a browser runs them. They are
// loaded at the first request for one.
// Does not: serve any path outside a fixed list: no part of a URL becomes the name of a file.

import type { IncomingHttpHeaders } from 'node:http';
import type { Credentials } from '../auth/credentials.ts';
import type { Answer, HeaderList } from '../http/answer.ts';
import { IS_EXECUTABLE, PROJECT, readProjectFile } from '../project.ts';
import { digestOf, type Page } from './strip.ts';

/** Where `compile.js` puts the page, so that no compiler is needed later; a path in the project. */
export const CACHE = 'node_modules/.cache/page.json';

/** Features of browsers that the page turns off, for itself and for all that it shows. */
const FEATURES =
  'accelerometer autoplay camera display-capture encrypted-media fullscreen geolocation gyroscope magnetometer ' +
  'microphone midi payment picture-in-picture screen-wake-lock serial usb xr-spatial-tracking';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types import-worker', // page/import/start-worker.ts
];

/** Of every file. */
const HEADERS: HeaderList = [
  ...['x-content-type-options', 'nosniff'],
  ...['cross-origin-resource-policy', 'same-origin'],
  ...['vary', 'accept-encoding'],
];

/** For the files that a browser loads first. In all other answers they would only take half a kilobyte. */
const FIRST_HEADERS: HeaderList = [
  ...['content-security-policy', POLICY.join('; ')],
  ...['referrer-policy', 'no-referrer'],
  ...['permissions-policy', FEATURES.replaceAll(/\S+/g, '$&=(),').slice(0, -1)],
];

const UNCHANGING = 'max-age=31536000, immutable'; // a year, in seconds

/** The content codings that are offered, the smallest first. */
const CODINGS = ['br', 'gzip'] as const;

interface Asset {
  readonly type: string;
  readonly headers: HeaderList;
  /** The entity tag: a weak one, since it stands for every coding. */
  readonly etag: string;
  readonly plain: Buffer;
  readonly br: Buffer;
  readonly gzip: Buffer;
}

/** The path of what the page fills into its login. */
const LOGIN = '/login.json';

/** Whether a request is one for a file of the page, if there is such a file. */
export function isForPage(method: string, path: string): boolean {
  return (
    (method === 'GET' || method === 'HEAD') && (path === '/' || path === LOGIN || path.startsWith('/v/'))
  );
}

export class PageFiles {
  readonly #login: Answer;
  #assets: Promise<ReadonlyMap<string, Asset>> | undefined;

  /** @param login the pair that the page fills in. */
  constructor(login: Credentials | undefined) {
    const headers = [
      ...HEADERS,
      'content-type',
      'application/json; charset=utf-8',
      'cache-control',
      'no-store',
    ];
    this.#login = { status: 200, headers, body: JSON.stringify(login ?? {}) };
  }

  /** @returns undefined if there is no such file. */
  async answer(path: string, headers: IncomingHttpHeaders, query = ''): Promise<Answer | undefined> {
    if (path === LOGIN) return this.#login;
    this.#assets ??= loadAssets().catch((error) => {
      this.#assets = undefined; // too many files were open at that moment, for example
      throw error;
    });
    const assets = await this.#assets;
    const asset = assets.get(`${path}?${query}`) ?? assets.get(path);
    return asset && answerWith(asset, headers);
  }
}

function answerWith(asset: Asset, sent: IncomingHttpHeaders): Answer {
  const { headers, etag } = asset;
  if (sent['if-none-match']?.includes(etag) === true) return { status: 304, headers };
  const coding = CODINGS.find((name) => accepts(sent['accept-encoding'], name));
  const typed = [...headers, 'content-type', `${asset.type}; charset=utf-8`];
  if (coding === undefined) return { status: 200, headers: typed, body: asset.plain };
  return { status: 200, headers: [...typed, 'content-encoding', coding], body: asset[coding] };
}

/** Whether a header names a content coding, and not with a weight of zero (RFC 9110 section 12.5.3). */
function accepts(codings: string | string[] = '', name: string): boolean {
  const found = `${codings}`.split(',').find((text) => text.split(';')[0]?.trim().toLowerCase() === name);
  return found !== undefined && !/;\s*q=0(?:\.0*)?\s*$/i.test(found);
}

async function loadAssets(): Promise<ReadonlyMap<string, Asset>> {
  const { digest, files } = await readPage();
  const etag = `W/"${digest}"`;
  return new Map(
    files.map(({ path, type, isFirst, text, br, gzip }) => {
      const headers = [
        ...(isFirst ? FIRST_HEADERS : []),
        ...HEADERS,
        ...['cache-control', path === '/' ? 'no-cache' : UNCHANGING],
        ...['etag', etag],
      ];
      const bodies = {
        plain: Buffer.from(text),
        br: Buffer.from(br, 'base64'),
        gzip: Buffer.from(gzip, 'base64'),
      };
      return [path, { type, headers, etag, ...bodies }];
    }),
  );
}

/**
 * The page as it was made at the installation, or, if that is missing or older than its sources, made now. The single
 * executable has no sources.
 */
export async function readPage(): Promise<Page> {
  try {
    const page: Page = JSON.parse(String(await readProjectFile(CACHE)));
    if (IS_EXECUTABLE || page.digest === digestOf(page.sources)) return page;
  } catch {
    // no such file, or only a part of it
  }
  return makePage();
}

/** Makes the page in a separate process. */
async function makePage(): Promise<Page> {
  const { execFile } = await import('node:child_process');
  const { promisify } = await import('node:util');
  const { fileURLToPath } = await import('node:url');
  const program = fileURLToPath(new URL('src/page/strip.ts', PROJECT));
  const args = ['--disable-warning=ExperimentalWarning', program];
  const options = { env: {}, maxBuffer: 64 * 1024 ** 2 }; // bytes
  const { stdout } = await promisify(execFile)(process.execPath, args, options);
  return JSON.parse(stdout);
}
