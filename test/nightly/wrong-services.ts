// Owns: wrong services: each is the right one behind a proxy that breaks one promise, and the rules that
// must find it out, a slash between them. Each rule has at least one, and each kind of fault occurs once.

import { createHmac } from 'node:crypto';
import { ENVIRONMENT, SECRET } from '../support/service.ts';
import { ask, type Fault, give, refuse } from '../support/wrong-service.ts';

/** @property rules the beginnings of their titles. */
export type WrongService = readonly [rules: string, name: string, fault: Fault];

/** Every message that a kit can get, and the cheapest rules about it. */
// biome-ignore format: they are short
const MESSAGES = [
  ['Token generated successfully', 'T3, T4'], ['Books retrieved successfully', 'rule F1: an empty'],
  ['Suggestions retrieved successfully', 'rules F3 and F13'],
  ['Book retrieved successfully', 'C2, G1'], ['Book updated successfully', 'U3'],
  ['Book deleted successfully', 'D1'], ['Book created successfully', 'C2, G1'],
  ['Books created successfully', 'B1: stores'], ['Invalid request payload', 'T1, rule 15'],
  ['Invalid input', 'C1'], ['Invalid input: book ', 'B2: one element'], ['Invalid idempotency key', 'I1'],
  ['Invalid query parameter: ', 'rule F3: an invalid'], ['Bad request', 'rule 20: an invalid percent'],
  ['Invalid credentials', 'T2: another'], ['Origin not allowed', 'rule 32'],
  ['Authorization token required', 'A1, A3'], ['Invalid token', 'A2, A4'],
  ['Book not found', 'G2 / H4, rule 10'], ['Not found', 'rule 20: unknown paths'],
  ['Method not allowed', 'rule 20: unknown paths'], ['Precondition failed', 'E3: a book is changed'],
  ['Payload too large', 'rule 22: a login'], ['Idempotency key already used', 'I2: the same'],
  ['Changes retrieved successfully', 'H1: every page'],
  ['Book history retrieved successfully', 'H4: a book has'], ['Changes undone successfully', 'H5, rule 12'],
  ['Change not found', 'H5: an unknown'], ['Undo checked', 'H5: with'], ['Event not found', 'H7 and H9'],
  ['Event retrieved successfully', 'H7: single'], ['Events retrieved successfully', 'H8: the last'],
  ['Books of the event retrieved successfully', 'H9: without'], ['Books imported successfully', 'M2: a file'], ['File checked', 'M2: a file'],
  ['Import retrieved successfully', 'M5'], ['Imports retrieved successfully', 'M5'], ['Import not found', 'M5'],
  ['Invalid file', 'M2, rule 7'], ['Session started', 'S1: a login'], ['Session renewed', 'S2'],
  ['Session expired', 'S2'], ['Session ended', 'S4'],
] as const;

/** A parameter is ignored, unless it is the only one. */
const ofParameters = [
  ...['q', 'title_contains', 'author_contains', 'title', 'author', 'title_starts_with', 'author_starts_with'],
  ...['year', 'year_gte', 'year_lte', 'sort', 'limit', 'offset', 'cursor', 'event'],
].map((name): WrongService => {
  const rules: Record<string, string> = {
    cursor: 'rules F3 and F5',
    event: 'F2 and F3: a search with event',
  };
  const rule = rules[name] ?? 'rules F2, F3 and F8';
  const given = new RegExp(`(?<=^GET /books\\?)${name}=[^&\\n]*&|&${name}=[^&\\n]*`);
  return [rule, `${name} is ignored`, ask(given, '')];
});

const ofMessages = MESSAGES.map(([message, rules]): WrongService => {
  const end = message.endsWith(' ') ? '' : '"';
  return [
    rules,
    `${message}: another message`,
    give(new RegExp(`("message":")(?=${message}${end})`), '$1No: '),
  ];
});

const ofQueries = 'page=1 q=a&q=b offset=-1 year=1999.5 sort=isbn q=ha* q=%ff'
  .split(' ')
  .map((query): WrongService => {
    const accept = ask(/(?<=^GET \/books\?).*$/m, (given) => (given === query ? 'limit=1' : given));
    return ['rule F3: an invalid', `${query} is accepted`, accept];
  });

/** Answers to such requests lack a header. */
const without = (name: string, request = '') =>
  give(new RegExp(`^(${request}[\\s\\S]*\\n)${name}: .*\\n`), '$1');

/** Such requests lack a header. */
const unsent = (name: string, request = '') =>
  ask(new RegExp(`^(${request}[\\s\\S]*\\n)${name}: .*\\n`), '$1');

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const signatureOf = (text: string) => createHmac('sha256', SECRET).update(text).digest('base64url');
const now = () => Math.floor(Date.now() / 1000);

const signed = (seconds: number) => {
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ exp: now() + seconds })}`;
  return `${text}.${signatureOf(text)}`;
};

/** Tokens pass that the right service refuses. @param pattern of both parts, and of whether the signature is right. */
const trust = (pattern: { test(text: string): boolean }) =>
  ask(/^(authorization: )(.+)$/m, (line, name, token) => {
    const [head = '', claims = '', signature] = token.split('.');
    const parts = [head, claims].map((part) => Buffer.from(part, 'base64url'));
    const isTrusted = pattern.test(`${parts.join(' ')} ${signature === signatureOf(`${head}.${claims}`)}`);
    return isTrusted ? `${name}${signed(900)}` : line;
  });

/** Lists and pages have other elements. @param path of a request, decoded. */
interface Element {
  readonly title: string;
  readonly book: object | null;
  readonly kind?: string;
  readonly until?: string;
}

const elements = (path: RegExp, change: (all: Element[]) => unknown) =>
  give(/^GET [\s\S]*"data":\[.*\]\}$/, (text) => {
    const [line = ''] = text.split('\n', 1);
    if (!path.test(decodeURIComponent(line.replaceAll('+', ' ')))) return text;
    return text.replace(/\[\{.*\}\](?=\}$)/, (all) => JSON.stringify(change(JSON.parse(all))));
  });

const momentOf = (run: Element) => {
  const time = Date.parse(run.until ?? '');
  return { ...run, at: run.until, event: `${time}-${time}` };
};

/** A search for a text does not find titles. */
const unfound = (text: RegExp, title = /^/) =>
  elements(new RegExp(`/books.*(title|title_contains)=${text.source}(&|$)`), (all) =>
    all.filter((one) => !title.test(one.title)),
  );

/** A search for a text is a search for another one. */
const same = (one: string, other: string) =>
  ask(new RegExp(`(?<=^GET .*=)${encodeURIComponent(one)}(?=&|$)`, 'm'), encodeURIComponent(other));

/** Equal requests get the answer to the first of them. @param pattern the part of a request that makes it the same. */
const repeat = (pattern: RegExp, status = 20): Fault => {
  const known = new Map<string, string>();
  return async (asked, pass) => {
    const [key = ''] = pattern.exec(asked) ?? [];
    const before = known.get(key);
    if (before !== undefined) return before;
    const given = await pass(asked);
    if (key !== '' && given.startsWith(`${status}`))
      known.set(key, given.replace('\n', '\nidempotent-replayed: true\n'));
    return given;
  };
};

const readAndWrite: Fault = async (asked, pass) => {
  if (!asked.startsWith('PUT ')) return pass(asked);
  const read = await pass(asked.replace(/^PUT/, 'GET').replace(/(?<=\n\n)[\s\S]*/, ''));
  const { data } = JSON.parse(read.replace(/^[\s\S]*\n\n/, ''));
  return pass(asked.replace(/(?<=\n\n).*/, (body) => JSON.stringify({ ...data, ...JSON.parse(body) })));
};

const waitForNothing: Fault = async (asked, pass) => {
  const given = await pass(asked.replace(/^prefer: .*\n/m, ''));
  return asked.includes('\nprefer: ') ? given.replace('\n', '\npreference-applied: wait=1\n') : given;
};

const walkByOffset: Fault = async (asked, pass) => {
  if (!asked.startsWith('GET /books?')) return pass(asked);
  const isFirst = !asked.includes('cursor=');
  const given = await pass(isFirst ? asked.replace('?', '?offset=0&') : asked.replace('cursor=', 'offset='));
  return given.replaceAll('offset=', 'cursor=');
};

const respelled = (signature: string) => Buffer.from(signature, 'base64url').toString('base64url');

const [NAME, PASSWORD] = [ENVIRONMENT.AUTH_USERNAME, ENVIRONMENT.AUTH_PASSWORD];
const WRONG_LOGIN = new RegExp(`^POST /token[\\s\\S]*\\n\\n(?!.*"${PASSWORD}")`);

const REMOVED = '{"status":200,"message":"Book deleted successfully","data":null}';

const OTHERS: readonly WrongService[] = [
  // Envelopes, headers, books
  ['C2, G1', 'the envelope has another status', give(/\{"status":200/, '{"status":201')],
  ['C2, G1', 'an envelope has a field more', give(/"data":/, '"success":true,"data":')],
  ['A1, A3', 'an error has data', give(/"data":null/, '"data":{}')],
  ['rule 24: headers of', 'answers may be stored', give(/no-store/, 'private')],
  ['rule 24: headers of', 'x-request-id is always x', give(/^x-request-id: .*$/m, 'x-request-id: x')],
  ['C2, G1', 'location is a URL', give(/^location: /m, 'location: http://books.test')],
  ['C2, G1', 'title and author are exchanged', give(/"title":(.*),"author":/, '"author":$1,"title":')],
  ['A1, A3', 'no www-authenticate', without('www-authenticate')],
  ['rule 20: unknown', 'allow lacks HEAD', give(/^(allow: .*)HEAD, /m, '$1')],
  ['rule 21: HEAD', 'the content-length of HEAD is 0', give(/^(HEAD [\s\S]*content-length: )\d+/, '$10')],
  ['C2, U3, rules 1 and 6', 'empty texts are null', give(/"title":""/, '"title":null')],
  ['rule 4', 'texts are normalized', give(/"title":.*/, (text) => text.normalize())],
  ['rules 4 and 22', 'a long title loses a letter', give(/(?<="title":"x{999})x/, 'y')],
  ['C2, G1', 'an id in the body of a new book gets 400', refuse(/^POST \/book\n[\s\S]*"id":/)],
  ['rule 5: keys', 'keys are not unescaped', ask(/\\u0074itle/g, 'other')],
  ['rule 6', 'a deep body gets 500', refuse(/\[{100}/, 500)],
  ['rule 3', 'a year has 32 bits', give(/"year":(-?\d+)/, (_, year) => `"year":${Number(year) | 0}`)],
  ['C1', 'null is an empty text', ask(/(?<=\n\n)\{"title":null/, '{"title":""')],
  ['U3', 'PUT ignores 0', ask(/^(PUT [\s\S]*)"year":0/, '$1"x":0')],
  ['rule 7: Content', 'a body must be JSON', refuse(/^POST [\s\S]*content-type: (?!.*json)/)],
  ['rule 7: a compressed', '415 does not name a coding', without('accept-encoding')],
  ['rule 7: Content', 'GET has no body', refuse(/^GET [\s\S]*\n\n./)],
  ['rule 7: Content', 'DELETE has no body', refuse(/^DELETE [\s\S]*\n\n./)],

  // Sessions
  ['S1: a login', 'scripts can read the cookie', give(/; HttpOnly/, '')],
  ['S1, T1 / S3, rule 32', 'pages of other origins count', ask(/^(?:origin|sec-fetch-site): .*\n/gm, '')],
  ['S2', 'a session lasts an hour', give(/"seconds":1800/, '"seconds":3600')],
  [
    'S3, A3',
    'a token counts beside a session',
    (asked, pass) =>
      pass(/^authorization: eyJ/m.test(asked) ? asked.replace(/^session-key: .*\n/m, '') : asked),
  ],
  ['S4', 'a log-out leaves the cookie for a second', give(/Max-Age=0/, 'Max-Age=1')],

  // Books one by one, all, and many at once
  [
    'L1, rule 13: the list has every',
    'the list is descending',
    elements(/books$/, (all) => all.toReversed()),
  ],
  [
    'L1, rule 13: the list has every',
    'the list has ten books',
    elements(/books$/, (all) => all.slice(0, 10)),
  ],
  ['L1, rule 13 and F6', 'the total is always 7', give(/^x-total-count: .*$/m, 'x-total-count: 7')],
  ['rule F1: an empty', 'an empty query string is a page', ask(/^GET \/books\?$/m, 'GET /books?limit=100')],
  ['rule F1: other', 'other paths do not ignore their query', refuse(/^GET \/book\/.*\?/)],
  ['rule 9: in 200 / rule 9: 64', 'PUT reads and then writes', readAndWrite],
  ['U1, rule 9: a missing', 'PUT reads the body first', refuse(/^PUT [\s\S]*\n\n\{$/)],
  ['D1', 'DELETE removes nothing', refuse(/^DELETE /, 200, 'Book deleted successfully')],
  ['D1 / rule 11', 'a book can be removed twice', give(/^(DELETE .*\n)404\n[\s\S]*/, `$1200\n\n${REMOVED}`)],
  ['D1 / rule 12', 'the id of a removed book is used again', repeat(/^POST \/book$/m)],
  ['rules 2 to 10', 'one request of many gets 500', refuse(/"good 59"/, 500)],
  ['B1: stores', 'ids in another order', give(/"data":\[(\d+),(\d+)/, '"data":[$2,$1')],
  ['B1: 10,000', 'a thousand books are too many', refuse(/"book 1000"/, 413)],
  ['B2: one', 'positions from 0', give(/: book (\d+)"/, (_, at) => `: book ${Number(at) - 1}"`)],
  ['B2: a body', 'an object is an empty array', ask(/(?<=^POST \/books[\s\S]*\n\n)\{\}$/, '[]')],

  // Keys and conditions
  ['I2: the same / H5, I2', 'a replay is not marked', without('idempotent-replayed')],
  ['I2: the same', 'keys do not look at the request', repeat(/^idempotency-key: .*$/m)],
  ['I2: a key', 'keys of arrays are ignored', unsent('idempotency-key', 'POST /books')],
  ['I3: of many', 'keys are ignored', unsent('idempotency-key')],
  ['I3: a request that failed', 'a failed request uses up its key', repeat(/^idempotency-key: .*$/m, 400)],
  ['I1', 'any key is a key', ask(/^idempotency-key: .*$/m, 'idempotency-key: key')],
  ['E1: every answer', 'a list has an etag', give(/^(GET \/books\n\d+\n)/, '$1etag: "1"\n')],
  ['E1: every state', 'all tags are the same', give(/^etag: .*/m, 'etag: "x"')],
  ['E2', 'If-None-Match compares strongly', ask(/^if-none-match: .*W\/.*\n/m, '')],
  ['E3: a book is changed', 'If-Match compares weakly', ask(/(?<=^if-match: .*)W\//gm, '')],
  ['E3: a tag counts', 'what proxies add to a tag counts', ask(/(?<=^if-.*)-br"/gm, '-xyz"')],
  ['E3: of 32 / E3: clients', 'If-Match is ignored', unsent('if-match')],
  ['E3: If-None-Match', 'If-None-Match is ignored by PUT', unsent('if-none-match', 'PUT ')],
  ['E3: a request', 'conditions come before bodies', refuse(/^PUT [\s\S]*if-match: [\s\S]*\n\n(?!\{")/, 412)],

  // Imports
  ['M1, M6', 'an unknown option is ignored', ask(/(?<=^POST \/import.*\?)nope$/m, '')],
  [
    'M1, M6',
    'a file is read before its options',
    refuse(/^POST \/import\?dry-run=maybe[\s\S]*\n\n./, 400, 'Invalid file'),
  ],
  ['M1: a file', 'Content-Type says the format', refuse(/^POST \/import[\s\S]*content-type: x/)],
  ['M1: the options', 'no other encoding is known', ask(/&encoding=[^&\n]*/, '')],
  ['M1: the options', 'equal rows are always left out', ask(/&on-duplicate=add/, '')],
  ['M1 and M5', 'GET checks the token last', give(/^(GET \/import.*\n)401\n[\s\S]*/, '$1200\n\n{}')],
  ['M2: a file', 'a check stores the file', ask(/(?<=^POST \/import\?)dry-run=true/, '')],
  ['M2: a file', 'an import has no path', give(/^(POST \/import[\s\S]*\n)location: .*\n/, '$1')],
  ['M3', 'a year that is a range has no proposal', give(/"proposal":"1901"/, '"proposal":null')],
  [
    'M3',
    'repeated rows are among those that are here',
    give(/"here":1,"repeated":1/, '"here":2,"repeated":0'),
  ],
  ['M3', 'refused rows have no records', give(/"record":"(?:[^"\\]|\\.)*"/g, '"record":""')],
  ['M4', 'an import that was taken back is stored', give(/"state":"undone"/, '"state":"stored"')],
  [
    'M9',
    'a row without a tag changes a book',
    ask(/(?<=^POST \/import\?)name=tags.csv&dry-run/, 'on-conflict=change&dry-run'),
  ],
  ['M9', 'on-conflict=add changes the book', ask(/on-conflict=add/, 'on-conflict=change')],
  ['M9', 'a changed row has no value of before', give(/"before":\{[^}]+\}/g, '"before":{}')],
  ['M5', 'the oldest import comes first', elements(/import(\?x)?$/, (all) => all.toReversed())],
  ['M6', 'other options take the places of all', ask(/(?<=^POST \/import\/.*\?author=a)$/m, '&year=')],
  ['M6', 'a file is stored as it was checked', ask(/(?<=^POST \/import\/\d+)\?author=a$/m, '')],
  ['M1 and M6', 'corrections have no effect', ask(/corrections=[^&\n]*/, '')],
  ['M7, I1', 'a key has no effect', unsent('idempotency-key', 'POST /import')],
  ['M7, I3', 'no answer says that it is a replay', without('idempotent-replayed', 'POST /import')],

  // The log
  ['H1: what', 'times are numbers', give(/"at":"[^"]*"/, `"at":${Date.UTC(2026, 0)}`)],
  ['H1: what', 'a cursor is ignored', ask(/^(GET \/changes\?.*)&cursor=.*/, '$1')],
  [
    'H1: the first / H1: without / H4: a page has',
    'the first element never comes',
    elements(/changes|history/, (all) => all.slice(1)),
  ],
  [
    'H1: an empty',
    'an empty page has no link',
    give(/^(GET \/changes[\s\S]*)link: .*(?=[\s\S]*\[\])/, '$1x: y'),
  ],
  ['H1: with', 'now is the beginning', ask(/(?<=^GET \/changes\?)cursor=now&/, '')],
  [
    'rules F1 and F3 / H1: HEAD / H4: HEAD / H8 and H9: HEAD',
    'HEAD of a page has no link',
    without('link', 'HEAD '),
  ],
  [
    'H1: an invalid / H4: an invalid / H8 and H9: an invalid',
    'limit=1001 is accepted',
    ask(/^(GET .*limit=)1001$/m, '$110'),
  ],
  [
    'H1, rules 9 / H4, rules 9 / H8 and H9, rules 9',
    'any token will do',
    give(/^(.*\n)401\n[\s\S]*/, '$1200\n\n{}'),
  ],
  ['H3: a wait ends', 'waits have no limit', give(/(?<=^preference-applied: wait=)60$/m, '100')],
  ['H3: without', 'a wait ends at once', waitForNothing],
  ['H3: a wait that', 'a wait may be half a second', ask(/(?<=^prefer: wait=)1\.5$/m, '1')],
  ['H4: a book has', 'the oldest state comes first', elements(/history/, (all) => all.toReversed())],
  ['H4: a change that', 'each PUT is a state', elements(/history/, ([one]) => [one, one])],
  ['H4: links', 'a history ends with its first page', without('link', 'GET .*/history')],
  [
    'H5: an undo is taken',
    'an undo has the number of a change',
    give(/"change":\d+(?=,"undone")/, '"change":1'),
  ],
  ['H5: an undo is a new', 'an undo is no state', elements(/history/, (all) => all.slice(-2))],
  ['H5: a book that was', 'a book is left without a reason', give(/,"reason":"changed later"/, '')],
  ['H5: later changes', 'a book that is as it was is left', give(/(?<="left":)\[\]/, '[{"id":1}]')],
  ['H5, I1 and', 'a refused undo uses up its key', repeat(/^POST \/undo|(?<=^idempotency-key: ).{36}/m, 404)],
  ['H5, I3', 'each of many undos has an effect', give(/"undone":0/, '"undone":1')],
  ['H5: since', 'a time has no fraction', refuse(/^POST \/undo[\s\S]*\.\d+Z/)],
  ['H5: an unknown', 'an event may be a change', ask(/(?<=^POST \/undo[\s\S]*)"event"/, '"change"')],
  ['H5, rules 5', 'of two changes the first counts', ask(/(?<="change":\d+),"event":\d+/, '')],
  ['H5, rules 9', 'GET takes back', ask(/^GET \/undo/, 'POST /undo')],
  ['H7: an undo', 'an undo is an import', give(/"kind":"undo"/, '"kind":"import"')],
  ['H5: an event is', 'a trial names no book that is left', give(/(?<="checked":.*"left":)\[.*?\]/, '[]')],
  ['H5: with', 'a trial may have a value', ask(/(?<=^POST \/undo\?dry-run)=true$/m, '')],
  ['H5: a run that', 'a text that names no event is unknown', refuse(/"event":"x"/, 404, 'Change not found')],
  ['H7: single', 'a run has the number of a change', give(/"event":"\d+-\d+"/, '"event":1')],
  [
    'H7 and H9',
    'an unknown event has no books',
    give(/^(GET \/event\/.*\/books\n)404\n[\s\S]*/, '$1200\n\n{}'),
  ],
  [
    'H8: changes',
    'each change is a run',
    elements(/\/events/, (all) => all.map((one) => (one.kind === 'changes' ? momentOf(one) : one))),
  ],
  ['H8: the events', 'the oldest event comes first', elements(/\/events/, (all) => all.toReversed())],
  ['H8: the last', 'the log has no beginning', elements(/\/events/, (all) => all.slice(0, -1))],
  ['H9: the books', 'an event has stored its books', give(/(?<="before":)\{[^}]*\}/g, 'null')],
  ['H9: without', 'a page has all books', ask(/(?<=^GET \/event\/.*\/books)$/m, '?limit=1000')],
  ['H7, rules 9', 'an event has no HEAD', give(/GET, HEAD, POST/, 'GET, POST')],

  // Paths
  ['rule 20: unknown', 'a slash at the end is ignored', ask(/^(\S+ \/books)\/$/m, '$1')],
  ['rule 10', 'zeros before an id are ignored', ask(/(?<=^\S+ \/book\/)0+(?=\d)/, '')],
  ['rule 20: an invalid', 'an invalid escape is an unknown path', refuse(/^\S+ \/%/, 404, 'Not found')],

  // Logins and tokens
  ['T3, T4', 'a token lasts an hour', give(/(?<="token":")[^"]*/, () => signed(3600))],
  ['T2: another', 'every username logs in', ask(/(?<="username":)"[^"]*"/, `"${NAME}"`)],
  ['T2, rule 15', 'usernames have no capitals', ask(/(?<="username":)"[^"]*"/, (name) => name.toLowerCase())],
  ['T3, rule 5', 'a login has no other fields', refuse(/^POST \/token[\s\S]*\n\n.*,.*,/)],
  ['rule 32', 'pages of other origins log in', ask(/^(origin|sec-fetch-site): .*\n/gm, '')],
  ['rule 29', 'failed logins are not limited', refuse(WRONG_LOGIN, 401, 'Invalid credentials')],
  ['A2, A4', 'a token after Bearer', ask(/(?<=^authorization: )Bearer /m, '')],
  ['A2, A4', 'a body is checked before the token', refuse(/^P[\s\S]*\n\n(?!\{.*\}$)/)],
  ['A5: a valid', 'no token is valid', refuse(/^authorization: ./m, 401)],
  ['A5, rule 17', 'HS512 is not accepted', ask(/^(?=authorization: eyJhbGciOiJIUzUxMi)/m, 'x-')],
  ['A4, rule 18: a token of another', 'a token without a signature', trust(/"alg":"none"/)],
  ['A4, rule 18: an algorithm', 'an algorithm may end in a space', trust(/"alg":"HS256 "/)],
  ['A4, rule 18: keys', 'a key inside a token is trusted', trust(/"jwk":/)],
  ['A4, rule 18: a token with', 'signatures do not count', trust(/ false$/)],
  ['A4, rule 18: each', 'claims may be an array', trust(/ \[.* true$/)],
  ['A4, rule 17', 'exp may be a text', trust(/"exp":"/)],
  ['A4, rule 17 / rule 17: exp and nbf', 'tokens never expire', trust(/"exp":\d{10}\} true$/)],
  ['rule 17: nbf', 'nbf is ignored', trust(/"nbf":/)],
  ['rule 17: a critical', 'crit is ignored', trust(/"crit":.* true$/)],
  ['rule 17: iat', 'other claims are refused', refuse(/^authorization: [^.\n]*\.[^.\n]{30,}\./m, 401)],
  ['A4, rule 18: tokens of', 'padding is accepted', ask(/^(authorization: .*)=$/m, '$1')],
  ['rule 18: a signature', 'other spellings of a signature', ask(/(?<=^auth.*\.)[^.\n]*$/m, respelled)],
  ['rule 9: the token', 'the query is checked before the token', refuse(/^GET \/books\?nope$/m)],

  // Searches
  ['rules F3, F4 and F6', 'a page has 150 books at most', ask(/(?<=^GET .*limit=)1000/, '150')],
  ['rule F4: links', 'no link to the first page', give(/,? ?<[^>]*>; rel="first"/, '')],
  ['rule F4: with an offset', 'no link to the page before', give(/,? ?<[^>]*>; rel="prev"/, '')],
  ['rule F4: without', 'a page has 20 books', ask(/^(GET \/books\?)(?!.*limit=)/, '$1limit=20&')],
  ['rule F6', 'no total', without('x-total-count')],
  ['rules F2, F3 and F8', 'one field of an order counts', ask(/(?<=sort=[^&,\n]*),[^&\n]*/, '')],
  ['rule F5: a walk', 'pages continue by their number', walkByOffset],
  ['rules F3 and F5', 'a cursor is valid with any order', ask(/(?<=^GET .*cursor=.*sort=)-title/, 'title')],
  ['rule F9', 'articles count', ask(/(?<=^GET .*sort=[^&\n]*)title_without_article/, 'title')],
  ['rule F9', 'first names come first', ask(/(?<=^GET .*sort=[^&\n]*)author_last_word/, 'author')],
  ['rule F9', 'unknown years are years', ask(/(?<=^GET .*sort=[^&\n]*)year_unknown_last/, 'year')],
  ['rule F10', 'titles that are q come by id', ask(/^(GET \/books\?)(?=.*q=)(?!.*sort=)/, '$1sort=id&')],
  ['rule F11', 'a search shows the books of a moment before', repeat(/^GET \/books\?.*$/m)],
  ['rule F12', 'OR is an operator', ask(/(?<=^GET .*)\+OR\+[^&\n]*/, '')],
  [
    'rule F13: a misspelt',
    'suggestions are folded',
    give(/(?<="value":").*?(?=")/, (text) => text.toLowerCase()),
  ],
  ['rule F13: a misspelt', 'suggestions leave out other filters', ask(/(?<=^GET \/sugg.*)&year=\d+/, '')],
  [
    'rule F13: of several',
    'the best suggestion is the last',
    elements(/^GET .sugg/, (all) => all.toReversed()),
  ],
  ['rules F3 and F13', 'suggestions ignore limit', ask(/(?<=^GET \/sugg.*)limit=1/, '')],
  ['rules F7 and F8', 'ƶ is not folded', unfound(/.*x/, /ƶx/)],
  ['rules F7 and F8', 'words are found by their beginnings without *', same('emm', 'emma')],
  ['rules F7 and F8', 'vowel signs are removed', same('कताब', 'किताब')],
  ['rule F8', 'a key is compared with its signs', unfound(/winnie.the.pooh/, /-the-/)],
];

export const WRONG_SERVICES = [...ofMessages, ...ofParameters, ...ofQueries, ...OTHERS];

/** What the client gets of bytes, one character for each; other lengths would make an answer incomplete. */
export type Bytes = (text: string) => string;

const instead = (right: number | string | RegExp, wrong: number | string): Bytes => {
  return (text) => text.replaceAll(typeof right === 'number' ? `${right}` : right, `${wrong}`);
};

export const RESET: Bytes = (text) => text;

export const WRONG_WIRES: readonly (readonly [rules: string, name: string, fault: Bytes])[] = [
  ['rule 20: requests', 'a refusal leaves its connection open', instead(/(?<=connection: )close/gi, 'open')],
  ['rule 20: CONNECT', 'an odd method gets 405', instead(400, 405)],
  ['rule 20: a truncated', 'a truncated request gets 408', instead(400, 408)],
  ['rule 20: a truncated / C2: a client that closes', 'the last answer resets its connection', RESET],
  ['rule 20: a missing', 'a second Host is ignored', instead(400, 200)],
  ['rules 20 and 21', 'an absolute target gets 404', instead(200, 404)],
  ['rule 20: a request with Upgrade', 'a request with Upgrade gets 426', instead(200, 426)],
  ['rule 20: an unknown expectation', 'an unknown expectation gets 417', instead(201, 417)],
  ['rule 20: garbage', 'garbage after a list gets 500', instead(400, 500)],
  ['rule 20: a refusal never', 'large headers are invalid HTTP', instead(431, 400)],
  ['rules 20 and 21', 'segments are resolved', instead(404, 200)],
  ['rule 24: an answer', 'an id of a request is replaced', instead(/(?<=x-request-id: )[^\r]*/gi, 'other')],
  ['rule 22: request / rule 22: 1,000', 'headers of any size are read', instead(431, 404)],
  ['rule 22: trailers', 'trailers of 16 KiB are read', instead(431, 401)],
  ['rule 22: a login / rules 20 and 22', 'a login of any size is read', instead(413, 401)],
  ['rule 22: 1 MiB / rule 22: an announced', 'a body of any size is read', instead(413, 201)],
  ['rule 20: a refusal with / B2: a client', 'a large body is invalid', instead(413, 400)],
  ['rules 7 and 22', 'an ignored body may not be large', instead(200, 413)],
  ['A3: a request', 'a token is not needed before the body is there', instead(401, 201)],
  ['A2, rule 18', 'the second of two tokens counts', instead(404, 401)],
  ['U1, rule 9: a PUT', 'the size of a body is checked before its book', instead(404, 413)],
  ['C2: a client that expects', 'no client is told to continue', instead('100 Continue', '103 Too early')],
  ['M1: a parameter', 'a file is read before its options', instead('nope', 'name')],
  ['C2: a body', 'a body in pieces gives another year', instead('-700', '-701')],
  ['B1 and B2', 'an array in pieces gets 200', instead(201, 200)],
  ['rules 9 and 20', 'a request does not see the one before it', instead('second', 'first!')],
  ['rule 9: pipelined', 'the last of many changes is lost', instead('"1198"', '"1196"')],
];
