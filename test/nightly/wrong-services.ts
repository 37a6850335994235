// Owns: wrong services: each is the right one behind a proxy that breaks one promise, and the rule that must find it out.

import { createHmac } from 'node:crypto';
import { ENVIRONMENT, SECRET } from '../support/service.ts';
import { ask, type Fault, give, refuse } from '../support/wrong-service.ts';

/** @property rule the beginning of its title. */
export type WrongService = readonly [rule: string, name: string, fault: Fault];

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
  [403, 'Origin not allowed', 'rule 32: a login'],
  [401, 'Authorization token required', 'A1, A3: without'],
  [401, 'Invalid token', 'A2, A4: a token that is malformed'],
  [404, 'Book not found', 'G2: a book'],
  [404, 'Not found', 'rule 20: unknown paths'],
  [405, 'Method not allowed', 'rule 20: unknown paths'],
  [412, 'Precondition failed', 'E3: a book is changed'],
  [413, 'Payload too large', 'rule 22: a login'],
  [422, 'Idempotency key already used', 'I2: the same'],
  [200, 'Changes retrieved successfully', 'H1: every page'],
  [200, 'Book history retrieved successfully', 'H4: a book has'],
  [200, 'Changes undone successfully', 'H5, rule 12'],
  [404, 'Change not found', 'H5: an unknown'],
];

const ofAnswers = ANSWERS.flatMap(([status, message, rule]): WrongService[] => {
  const meant = `\\n${status}\\n([^{]*){"status":${status},"message":"(${message}.*)","data":(.*)}`;
  const given = (by: string, of = status) =>
    give(new RegExp(meant), `\n${of}\n$1{"status":${of},"message":${by}}`);
  const other = status + (status === 200 ? 2 : status === 201 ? -1 : 10);
  return [
    [rule, `${status} ${message}: another status`, given('"$2","data":$3', other)],
    [rule, `${status} ${message}: another message`, given('"No: $2","data":$3')],
    status < 300
      ? [rule, `${status} ${message}: a field more`, given('"$2","success":true,"data":$3')]
      : [rule, `${status} ${message}: data is not null`, given('"$2","data":{}')],
  ];
});

/** A parameter is ignored, unless it is the only one. */
const ofParameters = [
  ...['q', 'title_contains', 'author_contains', 'title', 'author', 'title_starts_with', 'author_starts_with'],
  ...['year', 'year_gte', 'year_lte', 'sort', 'limit', 'offset', 'cursor'],
].map((name): WrongService => {
  const rule = name === 'cursor' ? 'rules F3 and F5' : 'rules F2, F3';
  const given = new RegExp(`(?<=^GET /books\\?)${name}=[^&\\n]*&|&${name}=[^&\\n]*`);
  return [rule, `${name} is ignored`, ask(given, '')];
});

const QUERIES =
  'page=1 Q=emma =1 q=a&q=b limit=0 limit=1001 offset=-1 year= year=1999.5 sort=isbn sort=title,-title q=ha* q=%ff cursor=abc';

const ofQueries = QUERIES.split(' ').map((query): WrongService => {
  const accept = ask(/(?<=^GET \/books\?).*$/m, (given) => (given === query ? 'limit=1' : given));
  return ['rule F3: an invalid', `${query} is accepted`, accept];
});

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const signatureOf = (text: string) => createHmac('sha256', SECRET).update(text).digest('base64url');
const now = () => Math.floor(Date.now() / 1000);

const signed = (seconds: number, others = {}) => {
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ ...others, exp: now() + seconds })}`;
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

/** Of tokens without `nbf`. */
const endLate = { test: (text: string) => Number(/"exp":(\d+)}/.exec(text)?.[1]) > now() - 2 };

/** Logins get other tokens. */
const token = (seconds: number, others?: object) =>
  give(/(?<="token":")[^"]*/, () => signed(seconds, others));

/** Lists and pages have other books. */
const books = (change: (books: { title: string }[]) => unknown, path = /.*/) =>
  give(/^GET \/books[\s\S]*"data":\[.*\]\}$/, (text) => {
    const [line = ''] = text.split('\n', 1);
    if (!path.test(decodeURIComponent(line.replaceAll('+', ' ')))) return text;
    return text.replace(/\[\{.*\}\](?=\}$)/, (all) => JSON.stringify(change(JSON.parse(all))));
  });

/** Pages of the log have other elements. */
const elements = (path: RegExp, change: (elements: { book: { title: string } | null }[]) => unknown) =>
  give(new RegExp(`^GET ${path.source}[\\s\\S]*"data":\\[.*\\]\\}$`), (text) =>
    text.replace(/\[\{.*\}\](?=\}$)/, (all) => JSON.stringify(change(JSON.parse(all)))),
  );

/** A search for a text does not find titles. */
const unfound = (text: RegExp, title = /^/) =>
  books(
    (all) => all.filter((one) => !title.test(one.title)),
    new RegExp(`(title|title_contains)=${text.source}(&|$)`),
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

/** What an undo has left is lost. */
const loseLeft: Fault = async (asked, pass) => {
  const given = await pass(asked);
  const [, id] = /"left":\[\{"id":(\d+)/.exec(given) ?? [];
  if (id !== undefined) await pass(asked.replace(/^.*/, `DELETE /book/${id}`).replace(/\n\n[\s\S]*/, '\n\n'));
  return given;
};

/** An undo is said, and not done. */
const sayUndone: Fault = async (asked, pass) => {
  if (!asked.startsWith('POST /undo')) return pass(asked);
  const given = await pass(asked.replace(/\{.*\}$/, `{"change":${Number.MAX_SAFE_INTEGER}}`));
  const data = '{"change":999,"undone":1,"left":[]}';
  return given
    .replace(/^404/, '200')
    .replace(/\{.*\}$/, `{"status":200,"message":"Changes undone successfully","data":${data}}`);
};

const walkByOffset: Fault = async (asked, pass) => {
  if (!asked.startsWith('GET /books?')) return pass(asked);
  const isFirst = !asked.includes('cursor=');
  const given = await pass(isFirst ? asked.replace('?', '?offset=0&') : asked.replace('cursor=', 'offset='));
  return given.replaceAll('offset=', 'cursor=');
};

/** An answer with a book, from its `etag` on. */
const withoutAuthor = (text: string) =>
  text.replace(/.*/, `etag: "${encode(text.replace(/[\s\S]*"id"|"author":.*(?=,"year")/g, ''))}"`);

const respelled = (signature: string) => Buffer.from(signature, 'base64url').toString('base64url');

const EVERY = 'rule 24: headers of every';
const WORDS = 'rules F7 and F8: words';
const [NAME, PASSWORD] = [ENVIRONMENT.AUTH_USERNAME, ENVIRONMENT.AUTH_PASSWORD];
const WRONG_LOGIN = new RegExp(`^POST /token[\\s\\S]*\\n\\n(?!.*"${PASSWORD}")`);

const OTHERS: readonly WrongService[] = [
  // Headers
  [EVERY, 'content-type without charset', give(/; charset=utf-8/, '')],
  [EVERY, 'answers may be stored', give(/no-store/, 'private')],
  [EVERY, 'one x-request-id for all', give(/^x-request-id: .*$/m, 'x-request-id: same')],
  ['rule 24: a client may', 'x-request-id of a client is replaced', ask(/^x-request-id: .*\n/m, '')],
  ['C2, rule 24', 'location is a URL', give(/^location: /m, 'location: http://books.test')],
  ['A1, A3, rule 24', 'no www-authenticate', give(/^www-authenticate: .*\n/m, '')],
  ['rule 20: unknown', 'allow lacks HEAD', give(/^(allow: .*)HEAD, /m, '$1')],
  ['E1: every answer', 'a list has an etag', give(/^(GET \/books\n\d+\n)/, '$1etag: "1"\n')],
  ['E1: every answer', 'etags are weak', give(/^etag: /m, 'etag: W/')],
  ['E1: every state', 'the etag leaves out the author', give(/^etag: [\s\S]*/m, withoutAuthor)],
  ['E2', '304 has no etag', give(/(\n304\n[\s\S]*)etag: .*\n/, '$1')],
  ['I2: the same', 'a replay is not marked', give(/^idempotent-replayed: .*\n/m, '')],
  ['rule F4: links', 'no link to the first page', give(/,? ?<[^>]*>; rel="first"/, '')],
  ['rule F4: with an offset', 'no link to the page before', give(/,? ?<[^>]*>; rel="prev"/, '')],
  ['rule F6', 'no total', give(/^x-total-count: .*\n/m, '')],
  ['rules F3, F4 and F6', 'no total above 100', give(/^x-total-count: \d{3,}$/m, 'x-total-count: 100')],
  ['L1, rule 13 and F6', 'the total is always 7', give(/^x-total-count: .*$/m, 'x-total-count: 7')],
  ['rule 21: HEAD', 'the content-length of HEAD is 0', give(/^(HEAD [\s\S]*content-length: )\d+/, '$10')],
  ['rules F1 and F3', 'HEAD of a page has no link', give(/^(HEAD [\s\S]*)link: .*\n/, '$1')],

  // Envelopes and books
  ['G1', 'the envelope has another status', give(/\{"status":200/, '{"status":201')],
  ['C2: stores', 'an id is a text', give(/"id":(\d+)/, '"id":"$1"')],
  ['C2: stores', 'title and author are exchanged', give(/"title":(.*),"author":/, '"author":$1,"title":')],
  ['rule 1:', 'empty texts are null', give(/"title":""/, '"title":null')],
  ['rule 4', 'texts are trimmed', give(/"title":" */, '"title":"')],
  ['rule 4', 'texts are normalized', give(/"title":.*/, (text) => text.normalize())],
  ['rule 5: an id', 'an id in the body of a new book gets 400', refuse(/^POST \/book\n[\s\S]*"id":/)],
  ['rule 3', 'a year has 32 bits', give(/"year":(-?\d+)/, (_, year) => `"year":${Number(year) | 0}`)],

  // The list
  ['L1, rule 13: the list is ascending', 'the list is descending', books((all) => all.toReversed())],
  ['L1: the list', 'the list has ten books', books((all) => all.slice(0, 10))],
  ['rule F1: an empty', 'an empty query string is a page', ask(/^GET \/books\?$/m, 'GET /books?limit=100')],
  ['rule F1: other', 'other paths do not ignore their query', refuse(/^GET \/book\/.*\?/)],

  // Bodies and changes
  ['C1, U2, rules 2', 'null is an empty text', ask(/(?<=\n\n)\{"title":null/, '{"title":""')],
  ['C1: malformed', 'a number is a title', ask(/"title":7/, '"title":"7"')],
  ['C1, U2, rules 4 and 6', 'a byte order mark is skipped', ask(/\n\n\xef\xbb\xbf/, '\n\n')],
  ['U2', 'the title of a changed book may be a number', ask(/^(PUT [\s\S]*)"title":7/, '$1"title":"7"')],
  ['rules 5 and 8', 'keys in capitals are read', ask(/"Title"/, '"title"')],
  ['rule 7: Content-Type', 'a body must be JSON', refuse(/^POST [\s\S]*content-type: (?!.*json)/)],
  ['rule 7: a body and its type are ignored when books', 'GET has no body', refuse(/^GET [\s\S]*\n\n./)],
  ['rule 7: a body and its type are ignored when a', 'DELETE has no body', refuse(/^DELETE [\s\S]*\n\n./)],
  ['U3', 'PUT ignores 0', ask(/^(PUT [\s\S]*)"year":0/, '$1"x":0')],
  ['U3', 'PUT returns another title', give(/^(PUT [\s\S]*"title":")/, '$1The ')],
  ['rule 9: in 200', 'PUT reads and then writes', readAndWrite],
  ['U1, rule 9: a missing', 'PUT reads the body first', refuse(/^PUT [\s\S]*\n\n\{$/)],
  ['D1', 'DELETE removes nothing', refuse(/^DELETE /, 200, 'Book deleted successfully')],
  ['D2', 'a book that does not exist is gone', give(/^(DELETE .*)\n404\n([\s\S]*)404/, '$1\n410\n$2410')],
  ['rule 12: the id', 'the id of a removed book is used again', repeat(/^POST \/book$/m)],
  ['rule 12: each', 'creates that meet get one id', repeat(/^POST \/book$/m)],
  ['B1: stores', 'ids in another order', give(/"data":\[(\d+),(\d+)/, '"data":[$2,$1')],
  ['B2: one', 'positions from 0', give(/: book (\d+)"/, (_, at) => `: book ${Number(at) - 1}"`)],

  // Keys and conditions
  ['I2: the same', 'keys do not look at the request', repeat(/^idempotency-key: .*$/m)],
  ['I2: a key', 'keys of arrays are ignored', ask(/^(POST \/books\n[\s\S]*)idempotency-key: .*\n/, '$1')],
  ['I3: of many', 'keys are ignored', ask(/^idempotency-key: .*\n/m, '')],
  ['I3: a request that failed', 'a failed request uses up its key', repeat(/^idempotency-key: .*$/m, 400)],
  ['I1', 'any key is a key', ask(/^idempotency-key: .*$/m, 'idempotency-key: key')],
  ['E3: a book is changed', 'If-Match compares weakly', ask(/(?<=^if-match: .*)W\//gm, '')],
  ['E3: a tag counts', 'what proxies add to a tag counts', ask(/(?<=^if-.*)-br"/gm, '-xyz"')],
  ['E3: of 32', 'If-Match is ignored', ask(/^if-match: .*\n/m, '')],
  ['E3: clients', 'If-Match: * would do', ask(/^if-match: .*$/m, 'if-match: *')],
  ['E3: If-None-Match', 'If-None-Match is ignored by PUT', ask(/^(PUT [\s\S]*)if-none-match: .*\n/, '$1')],
  ['E3: a request', 'conditions come before bodies', refuse(/^PUT [\s\S]*if-match: [\s\S]*\n\n(?!\{")/, 412)],
  ['E2', 'If-None-Match compares strongly', ask(/^if-none-match: .*W\/.*\n/m, '')],

  // The log
  ['H1: every page', 'a page of changes has no link', give(/^(GET \/changes[\s\S]*)link: .*\n/, '$1')],
  ['H1: every page', 'a link to changes lacks the limit', give(/limit=\d+&(?=cursor=)/, '')],
  ['H1: a change', 'times are numbers', give(/"at":"[^"]*"/, `"at":${Date.UTC(2026, 0)}`)],
  ['H1: the first', 'the books come descending', elements(/\/changes/, (all) => all.toReversed())],
  ['H1: the first', 'some books never come', elements(/\/changes/, (all) => all.slice(1))],
  ['H1: a change', 'a removal is not noted', elements(/\/changes/, (all) => all.filter(({ book }) => book))],
  ['H1: a change', 'the log has no present books', give(/(?<="year":)-7(?=\})/, '0')],
  ['H1: a change', 'a cursor is ignored', ask(/^(GET \/changes\?.*)&cursor=.*/, '$1')],
  ['H1: a change', 'the first page comes again', repeat(/^GET \/changes\?limit=1000/m)],
  [
    'H1: an empty',
    'an empty page has no link',
    give(/^(GET \/changes[\s\S]*)link: .*\n([\s\S]*\[\])/, '$1$2'),
  ],
  ['H1: a page has', 'a page has 150 changes', ask(/^(GET \/changes\?)(?=cursor)/, '$1limit=150&')],
  ['H1: an invalid', 'limit=1001 is accepted for changes', ask(/^(GET \/changes.*limit=)1001$/m, '$110')],
  ['H1: HEAD', 'HEAD of changes has no link', give(/^(HEAD [\s\S]*)link: .*\n/, '$1')],
  ['H1, rules 9', 'changes need no token', give(/^(GET \/changes.*\n)401\n[\s\S]*/, '$1200\n\n{}')],
  ['H3: a wait ends', 'waits are ignored', ask(/^prefer: .*\n/m, '')],
  ['H3: a wait ends', 'waits have no limit', give(/(?<=^preference-applied: wait=)60$/m, '100')],
  ['H3: without', 'a wait ends at once', waitForNothing],
  ['H3: a wait that', 'a wait may be half a second', ask(/(?<=^prefer: wait=)1\.5$/m, '1')],
  ['H4: a book has', 'the oldest state comes first', elements(/.*\/history/, (all) => all.toReversed())],
  [
    'H4: a book has',
    'a removal is no state',
    elements(/.*\/history/, (all) => all.filter(({ book }) => book)),
  ],
  ['H4: a book has', 'all states have one number', give(/"change":\d+/g, '"change":1')],
  ['H4: a change that', 'each PUT is a state', elements(/.*\/history/, ([one]) => [one, one])],
  ['H4: links', 'a history ends with its first page', give(/^(GET .*\/history[\s\S]*)link: .*\n/, '$1')],
  ['H4: links', 'a history has no further page', ask(/^(GET .*\/history.*)&cursor=.*/, '$1')],
  ['H4: HEAD', 'HEAD of a history has no link', give(/^(HEAD [\s\S]*)link: .*\n/, '$1')],

  ['H5, rule 12', 'an undo is said, and not done', sayUndone],
  ['H5, rule 12', 'an undo has no number', give(/"change":\d+(?=,"undone")/, '"change":null')],
  [
    'H5: an undo is taken',
    'an undo has the number of a change',
    give(/"change":\d+(?=,"undone")/, '"change":1'),
  ],
  [
    'H5: an undo is a new',
    'an undo is no state',
    elements(/.*\/history/, (all) => all.slice(all.length > 2 ? 1 : 0)),
  ],
  ['H5: a book that was', 'a book that was changed later is lost', loseLeft],
  ['H5: a book that was', 'a book that was left is not named', give(/"left":\[\{.*?\}\]/, '"left":[]')],
  ['H5: a book that was', 'a book is left without a reason', give(/,"reason":"changed later"/, '')],
  [
    'H5: later changes',
    'a book that is as it was is left',
    give(/(?<="change":null,"undone":0,"left":\[)(?=\])/, '{"id":1,"reason":"changed later"}'),
  ],
  ['H5, I2', 'an undo has no key', ask(/^(POST \/undo[\s\S]*\n)idempotency-key: .*\n/, '$1')],
  [
    'H5, I2',
    'a replayed undo is not marked',
    give(/^(POST \/undo\n[\s\S]*)idempotent-replayed: true\n/, '$1'),
  ],
  ['H5, I1 and', 'keys of undos are trimmed', ask(/(?<=^POST \/undo[\s\S]*idempotency-key: a) (?=b)/, '')],
  ['H5, I1 and', 'a refused undo uses up its key', repeat(/^POST \/undo|(?<=^idempotency-key: ).{36}/m, 404)],
  ['H5, I3', 'each of many undos has an effect', give(/"undone":0/, '"undone":1')],
  ['H5: since', 'a time that is to come counts', give(/"undone":0/, '"undone":1')],
  ['H5: since', 'a time has no fraction', refuse(/^POST \/undo[\s\S]*\.\d+Z/)],
  ['H5: since', 'a time has no offset but Z', refuse(/^POST \/undo[\s\S]*\+05:30/)],
  ['H5: an unknown', 'an import may be a change', ask(/(?<=^POST \/undo[\s\S]*)"import"/, '"change"')],
  [
    'H5, rules 5',
    'of two changes the first counts',
    ask(/(?<=^POST \/undo[\s\S]*"change":\d+),"import":\d+/, ''),
  ],
  ['H5, rules 5', 'a time needs no offset', ask(/(?<=^POST \/undo[\s\S]*T00:00:00)(?=")/, 'Z')],
  ['H5, rules 5', 'unknown keys of an undo are refused', refuse(/^POST \/undo[\s\S]*"id":7/)],
  ['H5, rules 9', 'undos need no token', give(/^(POST \/undo\n)401\n[\s\S]*/, '$1200\n\n{}')],
  ['H5, rules 9', 'GET takes back', ask(/^GET \/undo/, 'POST /undo')],

  // Paths
  ['rule 20: unknown', 'a slash at the end is ignored', ask(/^(\S+ \/books)\/$/m, '$1')],
  ['rule 10', 'zeros before an id are ignored', ask(/(?<=^\S+ \/book\/)0+(?=\d)/, '')],
  ['rule 10', 'ids are decoded', ask(/(?<=^\S+ \/book\/\S*)%3(\d)/g, '$1')],
  ['G2, rule 10', 'an odd id gets 500', refuse(/^GET \/book\/\D/, 500)],
  ['rule 20: an invalid', 'an invalid escape is an unknown path', refuse(/^\S+ \/%/, 404, 'Not found')],

  // Logins and tokens
  ['T3, T4', 'a token lasts an hour', token(3600)],
  ['T3, T4', 'a token names its user', token(900, { sub: 'librarian' })],
  ['T2: another', 'every username logs in', ask(/(?<="username":)"[^"]*"/, `"${NAME}"`)],
  ['T2: another', 'every password logs in', ask(/(?<="password":)"[^"]*"/, `"${PASSWORD}"`)],
  ['T2, rule 15', 'usernames have no capitals', ask(/(?<="username":)"[^"]*"/, (name) => name.toLowerCase())],
  ['T1, rule 15', 'a login may be no JSON', refuse(/^POST \/token[\s\S]*\n\n(?!\{)/, 401)],
  ['T3, rule 5', 'a login has no other fields', refuse(/^POST \/token[\s\S]*\n\n.*,.*,/)],
  ['rule 32: a login', 'pages of other origins log in', ask(/^(origin|sec-fetch-site): .*\n/gm, '')],
  [
    'rule 32: a login',
    'the own page cannot log in',
    refuse(/^POST \/token\n[\s\S]*origin: http:\/\/127/m, 403),
  ],
  ['rule 29', 'failed logins are not limited', refuse(WRONG_LOGIN, 401, 'Invalid credentials')],
  ['A2, A4: a token that is', 'a token after Bearer', ask(/(?<=^authorization: )Bearer /m, '')],
  ['A2, A4, rules 9', 'a body is checked before the token', refuse(/^P[\s\S]*\n\n(?!\{.*\}$)/)],
  ['A5: a valid', 'no token is valid', refuse(/^authorization: ./m, 401)],
  ['A5, rule 17', 'HS512 is not accepted', ask(/^(?=authorization: eyJhbGciOiJIUzUxMi)/m, 'x-')],
  ['A4: a token of another', 'a token without a signature', trust(/"alg":"none"/)],
  ['A4, rule 18: keys', 'a key inside a token is trusted', trust(/"jwk":/)],
  ['A4: an expired', 'tokens never expire', trust(/ true$/)],
  ['rule 17: exp and nbf', 'tokens last two seconds longer', trust(endLate)],
  ['rule 17: exp must', 'exp may be a text', trust(/"exp":"/)],
  ['rule 17: nbf', 'nbf is ignored', trust(/"nbf":/)],
  ['rule 17: a token with', 'crit is ignored', trust(/"crit":.* true$/)],
  ['rule 17: iat', 'other claims are refused', refuse(/^authorization: [^.\n]*\.[^.\n]{30,}\./m, 401)],
  ['A4, rule 18: tokens with a wrong', 'padding is accepted', ask(/^(authorization: .*)=$/m, '$1')],
  ['rule 18: a signature', 'other spellings of a signature', ask(/(?<=^auth.*\.)[^.\n]*$/m, respelled)],
  ['rule 9: the token', 'the query is checked before the token', refuse(/^GET \/books\?nope$/m)],

  // Searches
  ['rules F3, F4 and F6', 'a page has 150 books at most', ask(/(?<=^GET .*limit=)1000/, '150')],
  ['rule F4: a page has', 'a page has 20 books', ask(/^(GET \/books\?)(?!.*limit=)/, '$1limit=20&')],
  ['rules F2, F3', 'the order is always ascending', ask(/(?<=^GET .*sort=[^&\n]*)-/, '')],
  ['rules F2, F3', 'only the first field of an order counts', ask(/(?<=^GET .*sort=[^&,\n]*),[^&\n]*/, '')],
  ['rule F5: a walk', 'pages continue by their number', walkByOffset],
  ['rules F3 and F5', 'a cursor is valid with any order', ask(/(?<=^GET .*cursor=.*sort=)-title/, 'title')],
  ['rule F10', 'titles that are q come by id', ask(/^(GET \/books\?)(?=.*q=)(?!.*sort=)/, '$1sort=id&')],
  ['rule F11', 'a search shows the books of a moment before', repeat(/^GET \/books\?.*$/m)],
  ['rule F12', 'OR is an operator', ask(/(?<=^GET .*)\+OR\+[^&\n]*/, '')],
  [WORDS, 'case counts', unfound(/[A-Z]+/)],
  [WORDS, 'accents count', unfound(/etr.*/, /Étr/)],
  [WORDS, 'ƶ is not folded', unfound(/.*x/, /ƶx/)],
  [WORDS, 'an alif and a hard sign are letters', unfound(/quran obem/)],
  [WORDS, 'digits of other scripts are others', unfound(/2024/)],
  [WORDS, 'words are found by their beginnings without *', same('emm', 'emma')],
  [WORDS, 'Chinese words are found as a whole only', unfound(/.{1,2}/, /^百/)],
  [WORDS, 'vowel signs are removed', same('कताब', 'किताब')],
  [WORDS, 'all of a text is searched', same('beyond', 'zebra')],
  ['rule F8', 'a key is compared with its signs', unfound(/winnie.the.pooh/, /-the-/)],
];

export const WRONG_SERVICES = [...ofAnswers, ...ofParameters, ...ofQueries, ...OTHERS];

/** What the client gets of bytes, one character for each; other lengths would make an answer incomplete. */
export type Bytes = (text: string) => string;

const instead = (right: number | RegExp, wrong: number | string): Bytes => {
  return (text) => text.replaceAll(typeof right === 'number' ? `${right}` : right, `${wrong}`);
};

export const RESET: Bytes = (text) => text;

export const WRONG_WIRES: readonly (readonly [rule: string, name: string, fault: Bytes])[] = [
  ['rule 20: requests', 'a refusal leaves its connection open', instead(/(?<=connection: )close/gi, 'open')],
  ['rule 20: a truncated', 'a truncated request gets 408', instead(400, 408)],
  ['rule 20: a truncated', 'a refusal resets its connection', RESET],
  ['rule 20: a missing', 'a second Host is ignored', instead(400, 200)],
  ['rule 20: CONNECT', 'CONNECT gets 405', instead(400, 405)],
  ['rule 20: a request with Upgrade', 'a request with Upgrade gets 426', instead(200, 426)],
  ['rule 21: segments', 'segments are resolved', instead(404, 200)],
  ['rule 24: an answer', 'an id of a request is replaced', instead(/(?<=x-request-id: )[^\r]*/gi, 'other')],
  ['rule 22: 1,000', '1,001 header lines are read', instead(431, 404)],
  ['rule 22: trailers', 'trailers of 16 KiB are read', instead(431, 401)],
  ['rule 22: a login', 'a login of any size is read', instead(413, 401)],
  ['rule 22: an announced', 'an announced body is read', instead(413, 201)],
  ['A3: a request', 'a token is not needed before the body is there', instead(401, 201)],
  ['U1, rule 9: a PUT', 'the size of a body is checked before its book', instead(404, 413)],
];
