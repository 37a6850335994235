// Owns: the answers with the files of the librarians' page, which are loaded at the first request for one; and the policy under
// which a browser runs them and the pages for operators.
// Does not: serve any path outside a fixed list: no part of a URL becomes the name of a file.

import type { Credentials } from '../auth/credentials.ts';
import type { Answer, HeaderList } from '../http/answer.ts';
import type { RequestHeaders } from '../http/head.ts';
import { IS_EXECUTABLE, readProjectFile } from '../project.ts';
import { buildPage, digest, digestOf, fileOf, type Page } from './build.ts';

/** Where `compile.js` puts the page, so that esbuild is not needed later; a path in the project. */
export const CACHE = 'node_modules/.cache/page.json';

/** Features of browsers that the page turns off, for itself and for all that it shows. */
const FEATURES =
  'accelerometer autoplay camera display-capture encrypted-media fullscreen geolocation gyroscope magnetometer ' +
  'microphone midi payment picture-in-picture screen-wake-lock serial usb xr-spatial-tracking';

/** Of every file for a browser, beside its policy. */
export const GUARDS: HeaderList = [
  ...['x-content-type-options', 'nosniff'],
  ...['referrer-policy', 'no-referrer'],
  ...['cross-origin-resource-policy', 'same-origin'],
];

const POLICY = `${policyOf('')}; worker-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'`;

const HEADERS: HeaderList = [
  ...['content-security-policy', POLICY],
  ...['permissions-policy', FEATURES.replaceAll(/\S+/g, '$&=(),').slice(0, -1)],
  ...GUARDS,
  ...['vary', 'accept-encoding'],
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

/** What the page is called in its index.html. */
const NAME = 'Book catalogue';

export class PageFiles {
  readonly #login: Answer;
  readonly #name: string;
  #assets: Promise<ReadonlyMap<string, Asset>> | undefined;

  /**
   * @param login the pair that the page fills in.
   * @param name of the library.
   */
  constructor(login: Credentials | undefined, name = NAME) {
    this.#name = name;
    const own = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store'];
    const headers = [...HEADERS, ...own];
    this.#login = { status: 200, headers, body: JSON.stringify(login ?? {}) };
  }

  /** @returns undefined if there is no such file. */
  async answer(path: string, headers: RequestHeaders, query = ''): Promise<Answer | undefined> {
    if (path === LOGIN) return this.#login;
    this.#assets ??= loadAssets(this.#name).catch((error) => {
      this.#assets = undefined; // too many files were open at that moment, for example
      throw error;
    });
    const assets = await this.#assets;
    const asset = assets.get(`${path}?${query}`) ?? assets.get(path);
    return asset && answerWith(asset, headers);
  }
}

/**
 * The policy of a page that is complete without any other network.
 * @param connect what its programs may call, beside its own port; empty, or beginning with a space.
 */
export function policyOf(connect: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:", // icons are in style sheets
    `connect-src 'self'${connect}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function answerWith(asset: Asset, sent: RequestHeaders): Answer {
  const { headers, etag } = asset;
  if (sent['if-none-match']?.includes(etag) === true) return { status: 304, headers };
  const coding = CODINGS.find((name) => accepts(sent['accept-encoding'], name));
  const typed = [...headers, 'content-type', `${asset.type}; charset=utf-8`];
  if (coding === undefined) return { status: 200, headers: typed, body: asset.plain };
  return { status: 200, headers: [...typed, 'content-encoding', coding], body: asset[coding] };
}

/** Whether a header names a content coding, and not with a weight of zero (RFC 9110 section 12.5.3). */
function accepts(codings = '', name: string): boolean {
  const found = codings.split(',').find((text) => text.split(';')[0]?.trim().toLowerCase() === name);
  return found !== undefined && !/;\s*q=0(?:\.0*)?\s*$/i.test(found);
}

async function loadAssets(name: string): Promise<ReadonlyMap<string, Asset>> {
  const { version, files } = await readPage();
  const named = await Promise.all(
    files.map((file) =>
      file.path === '/' && name !== NAME
        ? fileOf(
            '/',
            file.type,
            file.text.replaceAll(NAME, () => escapeHtml(name)),
          )
        : file,
    ),
  );
  const etag = `W/"${digest([version, name])}"`;
  return new Map(
    named.map(({ path, type, text, br, gzip }) => {
      const headers = [
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

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/**
 * The page as it was built at the installation, or, if that is missing or older than its sources, built now. The single
 * executable has no sources.
 */
export async function readPage(): Promise<Page> {
  try {
    const page: Page = JSON.parse(String(await readProjectFile(CACHE)));
    if (IS_EXECUTABLE || page.digest === digestOf(page.sources)) return page;
  } catch {
    // no such file, or only a part of it
  }
  return buildPage();
}
