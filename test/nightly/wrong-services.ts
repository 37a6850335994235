// Owns: wrong services: each is the right one behind a proxy that breaks one promise, and the rule that must find it out.

import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ENVIRONMENT, SECRET } from '../support/service.ts';

interface Asked {
  method: string;
  path: string;
  /** Names in lower case. */
  headers: Record<string, string | undefined>;
  body: Buffer;
}

interface Given {
  status: number;
  headers: Record<string, string | undefined>;
  body: string;
}

interface Fault {
  /** Changes the request, or answers in place of the service. */
  ask?(asked: Asked, pass: (asked: Asked) => Promise<Given>): Given | undefined | Promise<Given | undefined>;
  /** Changes the answer. */
  give?(given: Given, asked: Asked): void;
}

export interface WrongService {
  readonly name: string;
  /** The beginning of the title of the rule. */
  readonly rule: string;
  /** Each run has its own state. */
  fault(): Fault;
}

export const NO_FAULT: Fault = {};

// biome-ignore lint/suspicious/noExplicitAny: JSON of any form
type Json = any;

const answer = (status: number, message: string, data: unknown = null): Given => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify({ status, message, data }),
});

/** A service that changes the envelope of an answer. */
const envelope =
  (change: (content: Json, given: Given, asked: Asked) => void): (() => Fault) =>
  () => ({
    give(given, asked) {
      if (given.body === '') return;
      const content = JSON.parse(given.body);
      change(content, given, asked);
      given.body = JSON.stringify(content);
    },
  });

/** One that changes each book, also in lists. */
const book = (change: (book: Json) => void) =>
  envelope(({ data }) => {
    for (const one of [data].flat()) if (one?.id !== undefined) change(one);
  });

/** One that changes the list and the pages. */
const books = (change: (books: Json[], asked: Asked, given: Given) => Json[]) =>
  envelope((content, given, asked) => {
    if (/^\/books(\?|$)/.test(asked.path) && asked.method === 'GET' && Array.isArray(content.data))
      content.data = change(content.data, asked, given);
  });

const header = (change: (headers: Given['headers'], given: Given, asked: Asked) => void) => () => ({
  give: (given: Given, asked: Asked) => change(given.headers, given, asked),
});

const without = (name: string) =>
  header((headers) => {
    headers[name] = undefined;
  });

const asking = (change: (asked: Asked) => Given | undefined) => (): Fault => ({
  ask: change,
});

/** One that changes the body of a new book and of a change, as text. */
const bodies = (change: (text: string, asked: Asked) => string) =>
  asking((asked) => {
    if (asked.method === 'GET' || asked.path === '/token') return;
    asked.body = Buffer.from(change(asked.body.toString('latin1'), asked), 'latin1');
  });

/** One that changes what a search asks for. */
const query = (change: (parameters: URLSearchParams) => void) =>
  asking((asked) => {
    const [path = '', text] = asked.path.split(/\?(.*)/s);
    if (path !== '/books' || text === undefined) return;
    const parameters = new URLSearchParams(text);
    const before = String(parameters);
    change(parameters);
    // Written again, a text that is not UTF-8 would be another one.
    if (String(parameters) !== before) asked.path = `${path}?${parameters}`;
  });

/** One that changes a text that is searched. */
const wanted = (change: (text: string) => string) =>
  query((parameters) => {
    for (const name of ['q', 'title_contains', 'title']) {
      const text = parameters.get(name);
      if (text !== null) parameters.set(name, change(text));
    }
  });

/** One that does not find some of the books. */
const unfound = (isLost: (title: string, text: string) => boolean) =>
  books((all, { path }) => {
    const { searchParams } = new URL(path, 'http://books.test');
    const text = searchParams.get('title_contains') ?? searchParams.get('title');
    return text === null ? all : all.filter(({ title }) => !isLost(title, text));
  });

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const signed = (claims: object, hash = 'sha256', algorithm = 'HS256') => {
  const text = `${encode({ alg: algorithm, typ: 'JWT' })}.${encode(claims)}`;
  return `${text}.${createHmac(hash, SECRET).update(text).digest('base64url')}`;
};
const seconds = () => Math.floor(Date.now() / 1000);
const part = (text = ''): Json => {
  try {
    return Object(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    return {};
  }
};

/** One that lets a token through which the right service refuses. */
const trusting = (
  trusts: (parts: { head: Json; claims: Json; isSigned: boolean; token: string }) => boolean,
) =>
  asking((asked) => {
    const token = asked.headers.authorization ?? '';
    const [first = '', second = '', signature = ''] = token.split('.');
    const isSigned =
      signature === createHmac('sha256', SECRET).update(`${first}.${second}`).digest('base64url');
    if (token !== '' && trusts({ head: part(first), claims: part(second), isSigned, token }))
      asked.headers.authorization = signed({ exp: seconds() + 900 });
  });

/** One that gives another token. */
const token = (tokenOf: () => string) =>
  envelope((content) => {
    if (content.data?.token !== undefined) content.data.token = tokenOf();
  });

const login = (change: (body: Json) => void) =>
  asking((asked) => {
    if (asked.path !== '/token') return;
    try {
      const body = JSON.parse(asked.body.toString());
      change(body);
      asked.body = Buffer.from(JSON.stringify(body));
    } catch {}
  });

/** Every answer of the contract that a kit can get, and the cheapest rule about it. */
const ANSWERS: readonly (readonly [status: number, message: string, rule: string])[] = [
  [200, 'Token generated successfully', 'T3, T4'],
  [200, 'Books retrieved successfully', 'rule F1: an empty'],
  [200, 'Book retrieved successfully', 'G1'],
  [200, 'Book updated successfully', 'U3'],
  [200, 'Book deleted successfully', 'D1'],
  [201, 'Book created successfully', 'C2: stores'],
  [201, 'Books created successfully', 'B1: stores'],
  [400, 'Invalid request payload', 'T1: a body'],
  [400, 'Invalid input', 'C1: malformed'],
  [400, 'Invalid input: book ', 'B2: one element'],
  [400, 'Invalid idempotency key', 'I1'],
  [400, 'Invalid query parameter: ', 'rule F3: an invalid'],
  [400, 'Bad request', 'rule 20: an invalid percent'],
  [401, 'Invalid credentials', 'T2: another'],
  [401, 'Authorization token required', 'A1, A3: without'],
  [401, 'Invalid token', 'A2, A4: a token that is malformed'],
  [404, 'Book not found', 'G2: a book'],
  [404, 'Not found', 'rule 20: unknown paths'],
  [405, 'Method not allowed', 'rule 20: unknown paths'],
  [412, 'Precondition failed', 'E3: a book is changed'],
  [413, 'Payload too large', 'rule 22: a login'],
  [422, 'Idempotency key already used', 'I2: the same'],
];

const ofAnswers = ANSWERS.flatMap(([status, message, rule]): WrongService[] => {
  const isMeant = (content: Json) =>
    content.status === status &&
    (message.endsWith(' ') ? content.message.startsWith(message) : content.message === message);
  const changed = (change: (content: Json, given: Given) => void) =>
    envelope((content, given) => {
      if (isMeant(content)) change(content, given);
    });
  const other = status === 200 ? 202 : status === 201 ? 200 : status + 10;
  return [
    {
      ...{ name: `${status} ${message}: another status`, rule },
      fault: changed((content, given) => {
        content.status = other;
        given.status = other;
      }),
    },
    {
      ...{ name: `${status} ${message}: another message`, rule },
      fault: changed((content) => {
        content.message = `${content.message}.`;
      }),
    },
    {
      ...{ name: `${status} ${message}: ${status < 300 ? 'a field more' : 'data is not null'}`, rule },
      fault: changed((content) => {
        if (status < 300) content.success = true;
        else content.data = {};
      }),
    },
  ];
});

/** Each parameter of a search is ignored. */
const ofParameters = [
  ...['q', 'title_contains', 'author_contains', 'title', 'author', 'title_starts_with', 'author_starts_with'],
  ...['year', 'year_gte', 'year_lte', 'sort', 'limit', 'offset', 'cursor'],
].map((name): WrongService => {
  return {
    name: `${name} is ignored`,
    rule: name === 'cursor' ? 'rules F3 and F5' : 'rules F2, F3',
    fault: query((parameters) => {
      if (parameters.size > 1) parameters.delete(name);
    }),
  };
});

const ACCEPTED_QUERIES: readonly (readonly [name: string, change: (parameters: URLSearchParams) => void])[] =
  [
    ['unknown parameters are ignored', (all) => all.delete('page')],
    ['names in capitals are read', (all) => all.has('Q') && rename(all, 'Q', 'q')],
    ['of two values the last one counts', (all) => all.set('q', all.getAll('q').at(-1) ?? '')],
    ['a limit of 0 is the usual one', (all) => all.get('limit') === '0' && all.delete('limit')],
    ['a limit above 1,000 is 1,000', (all) => Number(all.get('limit')) > 1000 && all.set('limit', '1000')],
    ['a negative offset is 0', (all) => Number(all.get('offset')) < 0 && all.set('offset', '0')],
    ['a year is rounded', (all) => all.get('year') === '1999.5' && all.set('year', '2000')],
    ['an empty year is no condition', (all) => all.get('year') === '' && all.delete('year')],
    ['an unknown order is ignored', (all) => all.get('sort') === 'isbn' && all.delete('sort')],
    [
      'a field may be in the order twice',
      (all) => all.get('sort') === 'title,-title' && all.set('sort', 'title'),
    ],
    ['two characters before a * are enough', (all) => all.get('q') === 'ha*' && all.set('q', 'har*')],
    ['seventeen words are searched', (all) => all.get('q')?.startsWith('w0 ') && all.set('q', 'w0')],
    ['a longer text is cut', (all) => (all.get('q')?.length ?? 0) > 1000 && all.set('q', 'x')],
    ['a cursor of any text is the first page', (all) => all.get('cursor') === 'abc' && all.delete('cursor')],
    ['UTF-8 is not checked', (all) => all.get('q') === '\ufffd' && all.set('q', 'x')],
  ];

function rename(all: URLSearchParams, from: string, to: string): void {
  all.set(to, all.get(from) ?? '');
  all.delete(from);
}

const REST: readonly (readonly [name: string, rule: string, fault: () => Fault])[] = [
  // Headers
  ...['content-type', 'x-content-type-options', 'cache-control', 'x-request-id'].map((name) => {
    return [`no ${name}`, 'rule 24: headers of every', without(name)] as const;
  }),
  [
    'content-type without charset',
    'rule 24: headers of every',
    header((headers) => {
      headers['content-type'] = 'application/json';
    }),
  ],
  [
    'answers may be stored',
    'rule 24: headers of every',
    header((headers) => {
      headers['cache-control'] = 'private';
    }),
  ],
  [
    'one x-request-id for all',
    'rule 24: headers of every',
    header((headers) => {
      headers['x-request-id'] = 'same';
    }),
  ],
  [
    'x-request-id of a client is replaced',
    'rule 24: a client may',
    header((headers) => {
      headers['x-request-id'] = 'other';
    }),
  ],
  [
    'any x-request-id is taken over',
    'rule 24: a client may',
    header((headers, _, asked) => {
      headers['x-request-id'] = asked.headers['x-request-id'] ?? 'other';
    }),
  ],
  ['no location', 'C2, rule 24', without('location')],
  [
    'location is a URL',
    'C2, rule 24',
    header((headers) => {
      if (headers.location) headers.location = `http://books.test${headers.location}`;
    }),
  ],
  ['no www-authenticate', 'A1, A3, rule 24', without('www-authenticate')],
  ['no allow', 'rule 20: unknown', without('allow')],
  [
    'allow has too many methods',
    'rule 20: unknown',
    header((headers) => {
      if (headers.allow) headers.allow += ', OPTIONS';
    }),
  ],
  [
    'allow lacks HEAD',
    'rule 20: unknown',
    header((headers) => {
      headers.allow = headers.allow?.replace('HEAD, ', '');
    }),
  ],
  ['no etag', 'E1: every answer', without('etag')],
  [
    'a list has an etag',
    'E1: every answer',
    header((headers, _, asked) => {
      if (asked.path === '/books') headers.etag = '"1"';
    }),
  ],
  [
    'etags are weak',
    'E1: every answer',
    header((headers) => {
      if (headers.etag) headers.etag = `W/${headers.etag}`;
    }),
  ],
  [
    'one etag for all',
    'E1: every state',
    header((headers) => {
      if (headers.etag) headers.etag = '"1"';
    }),
  ],
  [
    'another etag each time',
    'E1: every',
    () => {
      let count = 0;
      return {
        give({ headers }) {
          count += 1;
          if (headers.etag) headers.etag = `"${count}"`;
        },
      };
    },
  ],
  [
    'the etag leaves out the author',
    'E1: every state',
    envelope(({ data }, { headers }) => {
      if (headers.etag) headers.etag = `"${data.id}-${encode([data.title, data.year])}"`;
    }),
  ],
  [
    '304 has a content-type',
    'E2',
    header((headers, { status }) => {
      if (status === 304) headers['content-type'] = 'application/json; charset=utf-8';
    }),
  ],
  [
    '304 has no etag',
    'E2',
    header((headers, { status }) => {
      if (status === 304) headers.etag = undefined;
    }),
  ],
  ['a replay is not marked', 'I2: the same', without('idempotent-replayed')],
  [
    'every answer to a key is marked as a replay',
    'I2: the same',
    header((headers, _, asked) => {
      if (asked.headers['idempotency-key']) headers['idempotent-replayed'] = 'true';
    }),
  ],
  ['no link', 'rule F4: links', without('link')],
  [
    'no link to the first page',
    'rule F4: links',
    header((headers) => {
      headers.link = headers.link?.replace(/,? ?<[^>]*>; rel="first"/, '');
    }),
  ],
  [
    'no link to the page before',
    'rule F4: with an offset',
    header((headers) => {
      headers.link = headers.link?.replace(/,? ?<[^>]*>; rel="prev"/, '');
    }),
  ],
  [
    'the last page has a next one',
    'rule F4: links',
    header((headers) => {
      if (headers.link && !headers.link.includes('next'))
        headers.link = headers.link.replace('"first"', '"next"');
    }),
  ],
  ['no total', 'rule F6', without('x-total-count')],
  [
    'the total is that of the page',
    'rule F6',
    books((all, _, { headers }) => {
      if (headers['x-total-count']) headers['x-total-count'] = String(all.length);
      return all;
    }),
  ],
  [
    'no total above 100',
    'rules F3, F4 and F6',
    header((headers) => {
      const total = headers['x-total-count'];
      if (total !== undefined) headers['x-total-count'] = String(Math.min(100, Number(total)));
    }),
  ],
  ['no preference-applied', 'rule F6', without('preference-applied')],
  [
    'the content-length of HEAD is 0',
    'rule 21: HEAD',
    header((headers, _, { method }) => {
      if (method === 'HEAD') headers['content-length'] = '0';
    }),
  ],
  [
    'HEAD of a page has no link',
    'rules F1 and F3',
    header((headers, _, { method }) => {
      if (method === 'HEAD') headers.link = undefined;
    }),
  ],
  [
    'HEAD gets 405',
    'rule 21: HEAD',
    asking(({ method }) => {
      return method === 'HEAD' ? { ...answer(405, 'Method not allowed'), body: '' } : undefined;
    }),
  ],

  // Envelope and books
  [
    'no data with an error',
    'G2: a book',
    envelope((content) => {
      if (content.status === 404) delete content.data;
    }),
  ],
  [
    'the status is a text',
    'G1',
    envelope((content) => {
      content.status = String(content.status);
    }),
  ],
  [
    'the envelope has another status',
    'G1',
    envelope((content) => {
      content.status += 1;
    }),
  ],
  [
    'the book is not in data',
    'G1',
    envelope((content) => {
      if (content.data?.id) content.data = { book: content.data };
    }),
  ],
  [
    'answers are no JSON',
    'G2: a book',
    () => ({
      give(given) {
        given.body = given.body && '<h1>Not found</h1>';
      },
    }),
  ],
  [
    'an id is a text',
    'C2: stores',
    book((one) => {
      one.id = String(one.id);
    }),
  ],
  [
    'a book has another field',
    'C2: stores',
    book((one) => {
      one.isbn = '';
    }),
  ],
  [
    'no year',
    'C2: stores',
    book((one) => {
      delete one.year;
    }),
  ],
  [
    'a year is a text',
    'C2: stores',
    book((one) => {
      one.year = String(one.year);
    }),
  ],
  [
    'no years before 1',
    'C2: stores',
    book((one) => {
      one.year = Math.max(0, one.year);
    }),
  ],
  [
    'empty texts are null',
    'rule 1:',
    book((one) => {
      one.title ||= null;
    }),
  ],
  [
    'an absent year is null',
    'rule 1:',
    book((one) => {
      one.year ||= null;
    }),
  ],
  [
    'texts are trimmed',
    'rule 4',
    book((one) => {
      one.title = one.title.trim();
    }),
  ],
  [
    'texts are normalized',
    'rule 4',
    book((one) => {
      one.title = one.title.normalize();
    }),
  ],
  [
    'texts are cut after 255 characters',
    'rule 4',
    book((one) => {
      one.title = one.title.slice(0, 255);
    }),
  ],
  [
    'letters beyond the first 65,536 are lost',
    'rule 4',
    book((one) => {
      one.title = one.title.replace(/[^\0-\uffff]/gu, '?');
    }),
  ],
  [
    'a year is a float',
    'rule 3',
    book((one) => {
      one.year = Math.fround(one.year);
    }),
  ],
  [
    'a year has 32 bits',
    'rule 3',
    book((one) => {
      one.year |= 0;
    }),
  ],
  [
    'title and author are exchanged',
    'C2: stores',
    book((one) => {
      [one.title, one.author] = [one.author, one.title];
    }),
  ],

  // The list
  ['the list is descending', 'L1, rule 13: the list is ascending', books((all) => all.toReversed())],
  [
    'the list is sorted by title',
    'L1, rule 13: the list is ascending',
    books((all) => {
      return all.toSorted((one, two) => (one.title < two.title ? -1 : 1));
    }),
  ],
  ['the list lacks the last book', 'L1: the list', books((all) => all.slice(0, -1))],
  ['the list has ten books', 'L1: the list', books((all) => all.slice(0, 10))],
  ['the list has a book twice', 'L1: the list', books((all) => [...all, ...all.slice(-1)])],
  ['the list has other titles', 'L1: the list', books((all) => all.map((one) => ({ ...one, title: '' })))],
  [
    'an empty query string is a page',
    'rule F1: an empty',
    asking((asked) => {
      if (asked.path === '/books?') asked.path = '/books?limit=100';
    }),
  ],
  [
    'other paths do not ignore their query',
    'rule F1: other',
    asking(({ path }) => {
      return /^\/book\/.*\?/.test(path) ? answer(400, 'Bad request') : undefined;
    }),
  ],

  // Bodies
  [
    'null is an empty text',
    'C1, U2, rules 2',
    bodies((text) => text.replace(/^\{"title":null/, '{"title":""')),
  ],
  ['a number is a title', 'C1: malformed', bodies((text) => text.replace('"title":7', '"title":"7"'))],
  ['true is a title', 'C1: malformed', bodies((text) => text.replace('"title":true', '"title":"true"'))],
  ['an array is a title', 'C1: malformed', bodies((text) => text.replace('["kept"]', '"kept"'))],
  ['a text of digits is a year', 'C1: malformed', bodies((text) => text.replace('"1999"', '1999'))],
  ['a year is cut', 'C1: malformed', bodies((text) => text.replace('1999.5', '1999'))],
  [
    'an empty body is {}',
    'C1: malformed',
    bodies((text, { method }) => (method === 'POST' && text === '' ? '{}' : text)),
  ],
  ['a comma at the end is allowed', 'C1, U2, rules 4 and 6', bodies((text) => text.replace(/,\}$/, '}'))],
  [
    'a byte order mark is skipped',
    'C1, U2, rules 4 and 6',
    bodies((text) => text.replace(/^\xef\xbb\xbf/, '')),
  ],
  [
    'an array of one book is a book',
    'C1, U2, rules 4 and 6',
    bodies((text, { path }) => {
      return path === '/books' ? text : text.replace(/^\[(\{"title":"x"\})\]$/, '$1');
    }),
  ],
  ['NUL is removed', 'C1, U2, rules 2', bodies((text) => text.replaceAll('\\u0000', ''))],
  [
    'lone surrogates are replaced',
    'C1, U2, rules 2',
    bodies((text) => text.replaceAll(/"\\ud800/g, '"\\ufffd')),
  ],
  [
    'bytes that are not UTF-8 are replaced',
    'C1, U2, rules 4 and 6',
    bodies((text) => {
      return Buffer.from(Buffer.from(text, 'latin1').toString()).toString('latin1');
    }),
  ],
  [
    'large years are rounded',
    'C1, U2, rules 2',
    bodies((text) => text.replace('9007199254740993', '9007199254740991')),
  ],
  [
    'unknown keys get 400',
    'rules 5 and 8',
    asking(({ method, body }) => {
      return method === 'PUT' && body.includes('"Title"') ? answer(400, 'Invalid input') : undefined;
    }),
  ],
  ['keys in capitals are read', 'rules 5 and 8', bodies((text) => text.replace('"Title"', '"title"'))],
  [
    '{} is no change',
    'rules 5 and 8',
    asking(({ method, body }) => {
      return method === 'PUT' && String(body) === '{}' ? answer(400, 'Invalid input') : undefined;
    }),
  ],
  [
    'a new book needs a title',
    'rule 1:',
    asking(({ path, body }) => {
      return path === '/book' && String(body) === '{}' ? answer(400, 'Invalid input') : undefined;
    }),
  ],
  [
    'a body must say that it is JSON',
    'rule 7: Content-Type',
    asking(({ path, headers }) => {
      const isJson = headers['content-type'] === 'application/json';
      return path === '/book' && !isJson ? answer(415, 'Unsupported media type') : undefined;
    }),
  ],
  [
    'GET with a body gets 400',
    'rule 7: a body and its type are ignored when books are read',
    asking(({ method, body }) => {
      return method === 'GET' && body.length > 0 ? answer(400, 'Bad request') : undefined;
    }),
  ],
  [
    'DELETE with a body gets 400',
    'rule 7: a body and its type are ignored when a book',
    asking(({ method, body }) => {
      return method === 'DELETE' && body.length > 0 ? answer(400, 'Bad request') : undefined;
    }),
  ],

  // Changes
  [
    'PUT resets what is absent',
    'U3',
    bodies((text, { method }) => {
      if (method !== 'PUT') return text;
      return JSON.stringify({ title: '', author: '', year: 0, ...JSON.parse(text) });
    }),
  ],
  [
    'PUT ignores 0',
    'U3',
    bodies((text, { method }) => (method === 'PUT' ? text.replace('"year":0', '"x":0') : text)),
  ],
  [
    'PUT ignores empty texts',
    'U3',
    bodies((text, { method }) => {
      return method === 'PUT' ? text.replace('"author":""', '"x":0') : text;
    }),
  ],
  [
    'PUT stores nothing',
    'U3',
    () => ({
      async ask(asked, pass) {
        if (asked.method !== 'PUT') return undefined;
        const { body } = await pass({ ...asked, method: 'GET', body: Buffer.alloc(0) });
        const { data } = JSON.parse(body);
        return answer(200, 'Book updated successfully', { ...data, ...JSON.parse(String(asked.body)) });
      },
    }),
  ],
  [
    'PUT returns the book before it',
    'U3',
    () => {
      let before: Json;
      return {
        async ask(asked, pass) {
          if (asked.method === 'PUT')
            before = JSON.parse((await pass({ ...asked, method: 'GET', body: Buffer.alloc(0) })).body);
          return undefined;
        },
        give(given, { method }) {
          if (method === 'PUT') given.body = JSON.stringify({ ...JSON.parse(given.body), data: before.data });
        },
      };
    },
  ],
  [
    'PUT reads the body before it looks for the book',
    'U1, rule 9: a missing',
    asking(({ method, body }) => {
      return method === 'PUT' && String(body) === '{' ? answer(400, 'Invalid input') : undefined;
    }),
  ],
  [
    'PUT reads and then writes',
    'rule 9: in 200',
    () => ({
      async ask(asked, pass) {
        if (asked.method !== 'PUT') return undefined;
        const { data } = JSON.parse((await pass({ ...asked, method: 'GET', body: Buffer.alloc(0) })).body);
        asked.body = Buffer.from(JSON.stringify({ ...data, ...JSON.parse(String(asked.body)) }));
        return undefined;
      },
    }),
  ],
  [
    'DELETE removes nothing',
    'D1',
    asking(({ method }) => {
      return method === 'DELETE' ? answer(200, 'Book deleted successfully') : undefined;
    }),
  ],
  [
    'DELETE twice gets 200',
    'D2',
    envelope((content, given, { method }) => {
      if (method === 'DELETE') Object.assign(content, { status: 200, message: 'Book deleted successfully' });
      if (method === 'DELETE') given.status = 200;
    }),
  ],
  [
    'DELETE returns the book',
    'D1',
    envelope((content, _, { method }) => {
      if (method === 'DELETE') content.data = { id: 1 };
    }),
  ],
  [
    'GET of a removed book gets 200',
    'D1',
    () => {
      const known = new Map<string, Given>();
      return {
        give(given, { method, path }) {
          if (method === 'DELETE') known.set(path, answer(200, 'Book retrieved successfully', { id: 1 }));
          if (method === 'GET') Object.assign(given, known.get(path));
        },
      };
    },
  ],

  // Many books, and keys
  [
    'ids in another order',
    'B1: stores',
    envelope((content, _, { method, path }) => {
      if (method === 'POST' && path === '/books') content.data?.reverse?.();
    }),
  ],
  [
    'books instead of ids',
    'B1: stores',
    envelope((content, _, { method, path }) => {
      if (method === 'POST' && path === '/books')
        content.data = content.data?.map?.((id: number) => ({ id }));
    }),
  ],
  [
    'positions from 0',
    'B2: one',
    envelope((content) => {
      content.message = content.message.replace(
        /book (\d+)$/,
        (_: string, at: string) => `book ${Number(at) - 1}`,
      );
    }),
  ],
  [
    'keys are ignored',
    'I2: the same',
    asking((asked) => {
      asked.headers['idempotency-key'] = undefined;
    }),
  ],
  [
    'any key is a key',
    'I1',
    asking((asked) => {
      if (asked.headers['idempotency-key'] !== undefined) asked.headers['idempotency-key'] = 'key';
    }),
  ],
  [
    'keys do not look at the request',
    'I2: the same',
    () => {
      const known = new Map<string, Given>();
      return {
        ask: ({ headers }) => known.get(headers['idempotency-key'] ?? ''),
        give(given, { headers }) {
          const key = headers['idempotency-key'];
          if (key === undefined || given.status !== 201) return;
          known.set(key, { ...given, headers: { ...given.headers, 'idempotent-replayed': 'true' } });
        },
      };
    },
  ],
  [
    'a failed request uses up its key',
    'I3: a request that failed',
    () => {
      const used = new Set<string>();
      return {
        ask: ({ headers }) =>
          used.has(headers['idempotency-key'] ?? '')
            ? answer(422, 'Idempotency key already used')
            : undefined,
        give({ status }, { headers }) {
          if (status === 400 && headers['idempotency-key']) used.add(headers['idempotency-key']);
        },
      };
    },
  ],

  // Conditions
  [
    'If-Match is ignored',
    'E3: a book is changed',
    asking((asked) => {
      asked.headers['if-match'] = undefined;
    }),
  ],
  [
    'If-None-Match is ignored by GET',
    'E2',
    asking((asked) => {
      if (asked.method === 'GET') asked.headers['if-none-match'] = undefined;
    }),
  ],
  [
    'If-None-Match is ignored by PUT',
    'E3: If-None-Match',
    asking((asked) => {
      if (asked.method === 'PUT') asked.headers['if-none-match'] = undefined;
    }),
  ],
  [
    'If-Match compares weakly',
    'E3: a book is changed',
    asking((asked) => {
      asked.headers['if-match'] = asked.headers['if-match']?.replaceAll('W/', '');
    }),
  ],
  [
    'If-None-Match compares strongly',
    'E2',
    asking((asked) => {
      if (asked.headers['if-none-match']?.includes('W/')) asked.headers['if-none-match'] = undefined;
    }),
  ],
  [
    'If-None-Match: * is ignored',
    'E2',
    asking((asked) => {
      if (asked.headers['if-none-match'] === '*') asked.headers['if-none-match'] = undefined;
    }),
  ],
  [
    'of several tags one counts',
    'E2',
    asking((asked) => {
      asked.headers['if-none-match'] = asked.headers['if-none-match']?.split(',')[0];
    }),
  ],

  // Paths
  [
    'a slash at the end is ignored',
    'rule 20: unknown',
    asking((asked) => {
      asked.path = asked.path.replace(/^\/books\/$/, '/books');
    }),
  ],
  [
    'paths in capitals are read',
    'rule 20: unknown',
    asking((asked) => {
      asked.path = asked.path.toLowerCase();
    }),
  ],
  [
    'two slashes are one',
    'rule 20: unknown',
    asking((asked) => {
      asked.path = asked.path.replaceAll('//', '/');
    }),
  ],
  [
    'an unknown path needs a token',
    'rule 20: unknown',
    asking(({ path, headers }) => {
      return path === '/books/' && headers.authorization === undefined
        ? answer(401, 'Authorization token required')
        : undefined;
    }),
  ],
  [
    'zeros before an id are ignored',
    'rule 10',
    asking((asked) => {
      asked.path = asked.path.replace(/^\/book\/0+(?=\d)/, '/book/');
    }),
  ],
  [
    'a plus before an id is ignored',
    'rule 10',
    asking((asked) => {
      asked.path = asked.path.replace('/book/+', '/book/');
    }),
  ],
  [
    'ids are decoded',
    'rule 10',
    asking((asked) => {
      asked.path = asked.path.replace(/%3(\d)/, '$1');
    }),
  ],
  [
    'the text after an id is ignored',
    'rule 10',
    asking((asked) => {
      asked.path = asked.path.replace(/^(\/book\/[1-9]\d*)x$/, '$1');
    }),
  ],
  [
    'an id that is none gets 400',
    'rule 10',
    asking(({ path }) => {
      return path === '/book/abc' ? answer(400, 'Invalid input') : undefined;
    }),
  ],
  [
    'an invalid percent-escape is an unknown path',
    'rule 20: an invalid',
    asking(({ path }) => {
      return /^\/%/.test(path) ? answer(404, 'Not found') : undefined;
    }),
  ],

  // Logins and tokens
  ['a token lasts an hour', 'T3, T4', token(() => signed({ exp: seconds() + 3600 }))],
  ['a token names its user', 'T3, T4', token(() => signed({ sub: 'librarian', exp: seconds() + 900 }))],
  ['a token is signed by HS512', 'T3, T4', token(() => signed({ exp: seconds() + 900 }, 'sha512', 'HS512'))],
  ['exp is in milliseconds', 'T3, T4', token(() => signed({ exp: Date.now() + 900_000 }))],
  [
    'every username logs in',
    'T2: another',
    login((body) => {
      if (body.username) body.username = ENVIRONMENT.AUTH_USERNAME;
    }),
  ],
  [
    'every password logs in',
    'T2: another',
    login((body) => {
      if (body.password) body.password = ENVIRONMENT.AUTH_PASSWORD;
    }),
  ],
  [
    'the username may be in capitals',
    'T2, rule 15',
    login((body) => {
      body.username = body.username?.toLowerCase();
    }),
  ],
  [
    'spaces around the password are ignored',
    'T2, rule 15',
    login((body) => {
      body.password = body.password?.trim();
    }),
  ],
  [
    'a login without a field gets 400',
    'T2, rule 15',
    login((body) => {
      if (body.password === undefined) body.password = 0;
    }),
  ],
  [
    'a number is a username',
    'T1: a body',
    login((body) => {
      if (body.username === 1) body.username = 'x';
    }),
  ],
  [
    'failed logins are not limited',
    'rule 29',
    asking(({ path, body }) => {
      const isWrong = path === '/token' && !body.includes(`"${ENVIRONMENT.AUTH_PASSWORD}"`);
      return isWrong ? answer(401, 'Invalid credentials') : undefined;
    }),
  ],
  [
    'no token is an invalid one',
    'A1, A3: without',
    asking((asked) => {
      asked.headers.authorization ||= asked.path === '/token' ? undefined : 'x';
    }),
  ],
  [
    'reading needs no token',
    'A1, A3: without',
    asking((asked) => {
      if (asked.method === 'GET') asked.headers.authorization ??= signed({ exp: seconds() + 900 });
    }),
  ],
  [
    'a token after Bearer',
    'A2, A4: a token that is malformed',
    asking((asked) => {
      asked.headers.authorization = asked.headers.authorization?.replace(/^Bearer /, '');
    }),
  ],
  ['a token without a signature', 'A4: a token of another', trusting(({ head }) => head.alg === 'none')],
  ['a token of any secret', 'A4: a token of another', trusting(({ head }) => head.alg === 'HS256')],
  ['a token of any algorithm', 'A4: a token of another', trusting(({ head }) => head.alg === 'RS256')],
  ['tokens never expire', 'A4: an expired', trusting(({ isSigned }) => isSigned)],
  [
    'tokens end five minutes after exp',
    'rule 17: exp and nbf',
    trusting(({ claims, isSigned }) => {
      return isSigned && claims.exp > seconds() - 300 && claims.nbf === undefined;
    }),
  ],
  [
    'tokens end two seconds after exp',
    'rule 17: exp and nbf',
    trusting(({ claims, isSigned }) => {
      return isSigned && claims.exp > seconds() - 2 && claims.nbf === undefined;
    }),
  ],
  [
    'nbf may be a minute ahead',
    'rule 17: exp and nbf',
    trusting(({ claims, isSigned }) => {
      return isSigned && claims.exp > seconds() && claims.nbf < seconds() + 60;
    }),
  ],
  [
    'a token is valid once it was accepted',
    'rule 17: exp and nbf',
    () => {
      const accepted = new Set<string>();
      return {
        ask(asked) {
          if (accepted.has(asked.headers.authorization ?? ''))
            asked.headers.authorization = signed({ exp: seconds() + 900 });
          return undefined;
        },
        give({ status }, { headers }) {
          if (status !== 401 && headers.authorization) accepted.add(headers.authorization);
        },
      };
    },
  ],
  [
    'exp may be a text',
    'rule 17: exp must',
    trusting(({ claims, isSigned }) => isSigned && typeof claims.exp === 'string'),
  ],
  [
    'exp may be absent',
    'rule 17: exp must',
    trusting(({ claims, isSigned }) => isSigned && !Object.hasOwn(claims, 'exp')),
  ],
  [
    'nbf is ignored',
    'rule 17: nbf',
    trusting(({ claims, isSigned }) => isSigned && claims.nbf !== undefined),
  ],
  [
    'crit is ignored',
    'rule 17: a token with',
    trusting(({ head, isSigned }) => isSigned && head.crit !== undefined),
  ],
  [
    'other claims are refused',
    'rule 17: iat',
    asking(({ headers }) => {
      const claims = part(headers.authorization?.split('.')[1]);
      return claims.sub === undefined ? undefined : answer(401, 'Invalid token');
    }),
  ],
  [
    'only HS256 is accepted',
    'A5, rule 17',
    asking(({ headers }) => {
      const { alg = 'HS256' } = part(headers.authorization?.split('.')[0]);
      return alg === 'HS256' ? undefined : answer(401, 'Invalid token');
    }),
  ],
  [
    'padding is accepted',
    'A4, rule 18: tokens with a wrong',
    asking((asked) => {
      asked.headers.authorization = asked.headers.authorization?.replace(/=$/, '');
    }),
  ],
  [
    'other spellings of a signature',
    'rule 18: a signature',
    asking((asked) => {
      asked.headers.authorization = asked.headers.authorization?.replace(
        /\.([^.]*)$/,
        (_, signature: string) => {
          return `.${Buffer.from(signature, 'base64url').toString('base64url')}`;
        },
      );
    }),
  ],
  [
    'the query is checked before the token',
    'rule 9: the token',
    asking(({ path }) => {
      return path === '/books?nope' ? answer(400, 'Invalid query parameter: nope') : undefined;
    }),
  ],

  // Searches
  [
    'a page has 150 books at most',
    'rules F3, F4 and F6',
    query((all) => {
      if (Number(all.get('limit')) > 150) all.set('limit', '150');
    }),
  ],
  [
    'a page has 20 books without limit',
    'rule F4: a page has',
    query((all) => {
      if (!all.has('limit')) all.set('limit', '20');
    }),
  ],
  [
    'a page is not limited by its texts',
    'rule F4: a page has',
    () => ({
      async ask(asked, pass) {
        if (asked.method !== 'GET' || !asked.path.startsWith('/books?q=')) return undefined;
        const first = await pass(asked);
        const [, next] = /<([^>]*)>; rel="next"/.exec(first.headers.link ?? '') ?? [];
        const content = JSON.parse(first.body);
        if (next === undefined || content.data.length === 100) return undefined;
        content.data.push(...JSON.parse((await pass({ ...asked, path: next })).body).data);
        return { ...first, body: JSON.stringify(content) };
      },
    }),
  ],
  [
    'the order is always ascending',
    'rules F2, F3',
    query((all) => {
      const sort = all.get('sort');
      if (sort !== null) all.set('sort', sort.replaceAll('-', ''));
    }),
  ],
  [
    'only the first field of an order counts',
    'rules F2, F3',
    query((all) => {
      const sort = all.get('sort');
      if (sort !== null) all.set('sort', sort.replace(/,.*/, ''));
    }),
  ],
  [
    'a page begins with the last book of the one before',
    'rule F5: a walk',
    () => {
      let last: Json;
      return envelope((content, _, { path }) => {
        if (!path.startsWith('/books?') || !Array.isArray(content.data)) return;
        const end = content.data.at(-1);
        if (path.includes('cursor=')) content.data = [last, ...content.data.slice(0, -1)];
        last = end;
      })();
    },
  ],
  [
    'pages continue by their number',
    'rule F5: a walk',
    () => {
      let met = 0;
      return {
        ask(asked) {
          if (!asked.path.startsWith('/books?')) return undefined;
          if (!asked.path.includes('cursor=')) met = 0;
          asked.path = asked.path.replace(/cursor=[^&]*/, `offset=${met}`);
          return undefined;
        },
        give({ headers }, { path }) {
          if (!path.startsWith('/books?')) return;
          met += 7;
          headers.link = headers.link?.replace(/offset=\d+/, 'cursor=x');
        },
      };
    },
  ],
  [
    'a cursor is valid with any order',
    'rules F3 and F5',
    asking((asked) => {
      if (asked.path.includes('cursor=')) asked.path = asked.path.replace('sort=-title', 'sort=title');
    }),
  ],
  [
    'titles that are q do not come first',
    'rule F10',
    query((all) => {
      if (all.has('q') && !all.has('sort')) all.set('sort', 'id');
    }),
  ],
  [
    'a search shows what was there a moment before',
    'rule F11',
    () => {
      const known = new Map<string, Given>();
      return {
        ask: ({ path }) => known.get(path),
        give(given, { path }) {
          if (path.startsWith('/books?')) known.set(path, given);
        },
      };
    },
  ],
  ['OR is an operator', 'rule F12', wanted((text) => text.replace(/ OR .*/, ''))],
  [
    'minus is an operator',
    'rule F12',
    books((all, { path }) => {
      return path.includes('emma+-brown') ? all.filter(({ title }) => !/brown/i.test(title)) : all;
    }),
  ],
  [
    'quotation marks keep words together',
    'rule F12',
    books((all, { path }) => (path.includes('%22') ? [] : all)),
  ],
  [
    'case counts',
    'rules F7 and F8: words',
    unfound((title, text) => /^[A-Z]+$/.test(text) && !title.includes(text)),
  ],
  [
    'accents count',
    'rules F7 and F8: words',
    unfound((title, text) => title.includes('Étr') && text.includes('etr')),
  ],
  ['ø is not o', 'rules F7 and F8: words', unfound((title, text) => title.includes('Ø') && text === 'ore')],
  [
    'ß is not ss',
    'rules F7 and F8: words',
    unfound((title, text) => title === 'Straße' && text === 'strasse'),
  ],
  ...['æ', 'ł', 'þ', 'ə', 'ƶ', 'ς'].map((letter) => {
    return [
      `${letter} is not folded`,
      'rules F7 and F8: words',
      unfound((title, text) => title.includes(`${letter}x`) && text.includes('x')),
    ] as const;
  }),
  ['ä is ae', 'rules F7 and F8: words', wanted((text) => text.replace('haeuser', 'hauser'))],
  [
    'words are not found by their beginnings',
    'rules F7 and F8: words',
    unfound((_, text) => text.includes('*')),
  ],
  [
    'words are found by their beginnings without *',
    'rules F7 and F8: words',
    wanted((text) => text.replace(/^emm$/, 'emma')),
  ],
  ['apostrophes divide words', 'rules F7 and F8: words', unfound((_, text) => text === 'letranger')],
  ['initials are not found together', 'rules F7 and F8: words', unfound((_, text) => text === 'jrr')],
  [
    'Chinese words are found as a whole only',
    'rules F7 and F8: words',
    unfound((title, text) => /^百/.test(title) && title !== text),
  ],
  [
    'compatible forms differ',
    'rules F7 and F8: words',
    unfound((title, text) => title.includes('ﬁ') && text === 'fine'),
  ],
  ['signs alone are no word', 'rules F7 and F8: words', unfound((title) => title === '???')],
  ['™ is tm', 'rules F7 and F8: words', wanted((text) => text.replace('acmetm', 'acme'))],
  ['vowel signs are removed', 'rules F7 and F8: words', wanted((text) => text.replace('कताब', 'किताब'))],
  [
    'the voicing of kana is removed',
    'rules F7 and F8: words',
    wanted((text) => text.replace('かく', 'がく')),
  ],
  [
    'words are cut after 24 characters',
    'rules F7 and F8: words',
    wanted((text) => text.replace(/^(\w{24})\w{24,}$/, '$1*')),
  ],
  [
    '200 units of a text are searched',
    'rules F7 and F8: words',
    unfound((title, text) => !title.slice(0, 200).includes(text) && text === 'zebra'),
  ],
  ['all of a text is searched', 'rules F7 and F8: words', wanted((text) => text.replace('beyond', 'zebra'))],
  [
    'keys are cut after 60 characters',
    'rule F8',
    query((all) => {
      const title = all.get('title') ?? '';
      if (title.length <= 60) return;
      all.delete('title');
      all.set('title_starts_with', title.slice(0, 60));
    }),
  ],
  ['keys are not cut', 'rule F8', unfound((title, text) => text.length > 250 && title.length < text.length)],
  [
    'a key is compared with its signs',
    'rule F8',
    unfound((title, text) => title.includes('-the-') && !text.includes('-')),
  ],
];

export const WRONG_SERVICES: readonly WrongService[] = [
  ...ofAnswers,
  ...ofParameters,
  ...ACCEPTED_QUERIES.map(([name, change]) => ({ name, rule: 'rule F3: an invalid', fault: query(change) })),
  ...REST.map(([name, rule, fault]) => ({ name, rule, fault })),
];

/** Those that the kit does not find out, since it would take too many books or too long: docs/verify.md names them. */
export const NOT_FOUND: readonly WrongService[] = [
  {
    ...{ name: 'the list is cut after 50,000 books', rule: 'L1: the list' },
    fault: books((all) => all.slice(0, 50_000)),
  },
  {
    ...{ name: 'a key is forgotten after an hour', rule: 'I2: the same' },
    fault: () => {
      const times = new Map<string, number>();
      return {
        ask({ headers }) {
          const key = headers['idempotency-key'];
          if (key === undefined) return undefined;
          const time = times.get(key) ?? Date.now();
          if (Date.now() - time > 3_600_000) headers['idempotency-key'] = undefined;
          else times.set(key, time);
          return undefined;
        },
      };
    },
  },
];

/** A proxy that breaks one promise at a time. */
export class WrongProxy {
  readonly url: string;
  /** The fault of the moment. */
  fault = NO_FAULT;
  /** Failed logins of one service do not count for the next one (rule 29). */
  client = 0;
  readonly #close: () => void;

  private constructor(url: string, close: () => void) {
    this.url = url;
    this.#close = close;
  }

  /** @param target the URL of the right service, which trusts proxies of this machine. */
  static async start(target: string): Promise<WrongProxy> {
    const agent = new Agent({ keepAlive: true });
    const reply = async (request: IncomingMessage, response: ServerResponse) => {
      const asked: Asked = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: { ...request.headers } as Asked['headers'],
        body: Buffer.concat(await Array.fromAsync(request)),
      };
      const { fault, client } = proxy;
      const pass = (wanted: Asked) => passed(target, agent, wanted, client);
      const { status, headers, body } = await replyOf(fault, asked, pass);
      const isBare = asked.method === 'HEAD' || status === 304;
      const length = isBare ? {} : { 'content-length': String(Buffer.byteLength(body)) };
      response.writeHead(status, definedOf({ ...headers, ...length }));
      response.end(isBare ? '' : body);
    };
    const server = createServer((request, response) => {
      reply(request, response).catch(() => response.destroy()); // a rule that has failed waits for none of its other requests
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const proxy = new WrongProxy(url, () => {
      server.close();
      server.closeAllConnections();
      agent.destroy();
    });
    return proxy;
  }

  stop(): void {
    this.#close();
  }
}

async function replyOf(fault: Fault, asked: Asked, pass: (asked: Asked) => Promise<Given>): Promise<Given> {
  const given = (await fault.ask?.(asked, pass)) ?? (await pass(asked));
  const copy = { ...given, headers: { ...given.headers } };
  fault.give?.(copy, asked);
  return copy;
}

async function passed(
  target: string,
  agent: Agent,
  { method, path, headers, body }: Asked,
  client: number,
): Promise<Given> {
  const { 'transfer-encoding': _coding, connection: _connection, ...others } = headers;
  const request = send(target, {
    agent,
    method,
    path,
    headers: definedOf({
      ...others,
      'content-length': body.length > 0 || headers['content-length'] ? String(body.length) : undefined,
      'x-forwarded-for': `198.51.${client >> 8}.${client & 255}`,
    }),
  });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const { connection: _closing, 'keep-alive': _time, 'transfer-encoding': _form, ...rest } = response.headers;
  return {
    status: response.statusCode ?? 0,
    headers: rest as Given['headers'],
    body: Buffer.concat(await Array.fromAsync(response)).toString(),
  };
}

const definedOf = (headers: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
