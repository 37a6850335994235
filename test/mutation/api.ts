// Owns: mutants of the HTTP server: its limits, its refusals, its order, its description.

import { Mutants } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const NIGHTLY_CONTRACT = 'test/nightly/contract.test.ts';
const TIMES = 'test/project/times.test.ts';
const OVERLOAD = 'test/orders/overload.test.ts';
const CORS = 'test/api/cors.test.ts';
const DOCUMENTATION = 'test/project/documentation.test.ts';
const CONNECTION = 'test/api/connection.test.ts';
const ROOM = 'test/api/room.test.ts';
const HOST = 'test/api/host.test.ts';

export const API_MUTANTS = new Mutants()
  .in('src/times.ts')
  .mutant('headers must arrive within 10 s', TIMES, 'the headers of a request have 15 s')
  .change('headers: 15 * SECOND', 'headers: 10 * SECOND')
  .mutant('a request may take 90 s', TIMES, 'the whole request has 30 s')
  .change('wholeRequest: 30 * SECOND', 'wholeRequest: 90 * SECOND')
  .mutant('an idle connection is closed after 60 s', TIMES, 'without another request has 72 s')
  .change('keepAlive: 72 * SECOND', 'keepAlive: 60 * SECOND')
  .mutant('a stalled reader is cut after 30 s', TIMES, 'a reader has 60 s')
  .change('reader: 60 * SECOND', 'reader: 30 * SECOND')
  .mutant('clients that do not read keep the room for a minute', TIMES, 'a reader has 5 s')
  .change('readerWithoutRoom: 5 * SECOND', 'readerWithoutRoom: 60 * SECOND')
  .mutant('calls wait until they are late', OVERLOAD, 'all others are answered')
  .change('queue: 2 * SECOND', 'queue: 20 * SECOND')
  .in('src/http/connection.ts')
  .mutant('the server gets all that arrives at once', CONNECTION, 'with the last 0 bytes')
  .change('return end + END.length;', 'return bytes.length;')
  .mutant('a request is read before the answer to the one before', CONNECTION, 'with the last 0 bytes')
  .change('const isNext = this.#isAnswered ||', 'const isNext = true ||')
  .mutant('the end of a request brings the next one along', CONNECTION, 'with the last 1 bytes')
  .change('let kept = Math.min(END.length - 1, piece.length);', 'let kept = 0;')
  .mutant('ends of lines wait for what follows them', CONNECTION, '"\\\\n" only is read as it arrives')
  .change('return piece.length - kept;', 'return piece.toString().trimEnd().length;')
  .mutant('a piece of a chunk has any length', CONNECTION, '"\\\\n" only is read as it arrives')
  .change('bytes.length > PIECE ? bytes.subarray(0, PIECE) : bytes', 'bytes')
  .mutant('chunks do not wait for a turn', CONNECTION, 'only is read as it arrives')
  .change('this.#isInChunks && !isItsTurn', 'false')
  .mutant('any number of pieces is read at once', CONNECTION, 'only is read as it arrives')
  .change('pieces < PIECES && this.#mayGive', 'this.#mayGive')
  .mutant('an end of a line counts as another request', CONNECTION, 'an end of a line follows it')
  .change('(this.#received?.length ?? 0) >= END.length', 'this.#received !== undefined')
  .mutant(
    'a connection is closed at SIGTERM while a request arrives on it',
    'test/process/lifecycle.test.ts',
    'completed after SIGTERM',
  )
  .change('this.#hasNext || this.#isInHeaders || ', '')
  .mutant('a body in chunks is read like one of a known length', CONNECTION, 'however requests are cut')
  .change("request.headers['content-length'] ?? 0", "request.headers['content-length'] ?? Infinity")
  .mutant('a body is read faster than the service takes it', CONNECTION, 'no faster than')
  .change('isNext && this.#isRead && ', 'isNext && ')
  .mutant('of a body that nobody reads, every chunk is kept', CONNECTION, 'little is kept')
  .change('{ decodeStrings: false, readableHighWaterMark: 1 }', '{ decodeStrings: false }')
  .mutant('requests that wait take any amount of memory', CONNECTION, '64 MiB wait behind')
  .change('return bytes === 0 || waiting.bytes <= WAITING;', 'return true;')
  .mutant('a few bytes that wait keep a whole read', CONNECTION, 'keep no other memory')
  .change('this.#received = compact(this.#received)', 'this.#received = this.#received')
  .mutant('what has waited keeps its room', CONNECTION, '64 MiB wait behind')
  .change('    this.#takeWaiting(0);\n', '')
  .mutant('a refused tunnel ends the process if its client is gone', CONNECTION, 'refusal of a tunnel')
  .change('for (const stream of [socket, this])', 'for (const stream of [socket])')
  .mutant(
    'half an answer seems whole if its request does not end',
    CONNECTION,
    'ends the connection, by a reset',
  )
  .change(
    'if (isAnswered && this.#response?.writableEnded === false)',
    'if (isAnswered && isAnswered === undefined)',
  )
  .mutant(
    'a refused connection waits for its reader without an end',
    CONNECTION,
    'ends the connection, by a reset',
  )
  .change('const isArriving = !this.#isEnding && (', 'const isArriving = (')
  .mutant('an answer is produced faster than its client reads it', CONNECTION, 'no faster than its client')
  .change('chunks.length - 1 ? done : undefined', 'chunks.length - 1 ? void done() : undefined')
  .mutant('a client with many requests does not leave a turn to others', CONNECTION, 'leaves every turn')
  .change('    this.#hasTurn = true;\n    turns.push(this);', '    return this.#give();')
  .mutant('a turn has no end', CONNECTION, 'leaves every turn')
  .change('count > 0 && performance.now() < end', 'count > 0')
  .mutant(
    'a client that says nothing may stay as long as one that asks',
    CONNECTION,
    'before the first request',
  )
  .change('this.#count === 0 ? headers : keepAlive', 'keepAlive')
  .mutant('headers may take as long as a whole request', CONNECTION, 'before the end of the headers')
  .change('this.#isInHeaders ? headers : wholeRequest', 'wholeRequest')
  .mutant('a reader that stalls is never cut', CONNECTION, 'reads none')
  .change('read: room.isRefused ? readerWithoutRoom : reader', 'read: Infinity')
  .mutant('unread answers take any amount of memory', CONNECTION, 'reads none')
  .change('room.taken + bytes > Math.max(ROOM, bytes)', 'room.taken < 0')
  .mutant(
    'a client that is still sending does not read its last answer',
    CONTRACT,
    'sends far more before it reads',
  )
  .change(
    'this.#socket.end(done);\n    this.#socket.resume();',
    'this.#socket.end(() => this.#socket.destroy());',
  )
  .in('src/http/server.ts')
  .mutant('request line and headers may have one byte more', CONTRACT, '16 KiB are read')
  .change('maxHeaderSize: headerLimit,', 'maxHeaderSize: headerLimit + 1,')
  .mutant('a request may name two hosts', CONTRACT, 'a missing or second Host')
  .change('hasKnownCoding(request) && hasOneHost(request)', 'hasKnownCoding(request)')
  .mutant('a body in an unknown coding is read', CONTRACT, 'the request after them is not carried out')
  .change('isHttp1(request) && hasKnownCoding(request)', 'isHttp1(request)')
  .in('src/api/login.ts')
  .mutant('everybody may send a body of a mebibyte', NIGHTLY_CONTRACT, 'a login of 4 KiB')
  .change('readBody(request, LOGIN_LIMIT)', 'readBody(request, parts.config.bodyLimit)')
  .in('src/http/body.ts')
  .mutant('a request whose client has left waits for ever', ROOM, 'whose client leaves')
  .change('reject(new BodyIncomplete()); // with', '// with')
  .mutant('a body may have one byte more than the limit', CONTRACT, 'one byte more gets 413')
  .change('if (end > limit) throw', 'if (end > limit + 1) throw')
  .mutant('there is room for 16 MiB of large bodies', ROOM, '128 bodies of 1 MiB')
  .change('const ROOM = 128 * 1024 * 1024;', 'const ROOM = 16 * 1024 * 1024;')
  .mutant('there is room for one more large body', ROOM, '128 bodies of 1 MiB')
  .change('const ROOM = 128 * 1024 * 1024;', 'const ROOM = 129 * 1024 * 1024;')
  .mutant('the pieces of a body are kept as they arrive', ROOM, 'the pieces of a body')
  .change(
    '  const onData = (chunk: Buffer) => {',
    '  const kept: Buffer[] = [];\n  const onData = (chunk: Buffer) => {\n    kept.push(chunk);',
  )
  .in('src/http/body.ts')
  .mutant('a body may have any number of values', ROOM, 'at most 250,000')
  .change('return values > MOST_VALUES;', 'return false;')
  .mutant('a text counts as the values that it looks like', ROOM, 'at most 250,000')
  .change('isInText = !isInText', 'isInText = false')
  .in('src/api/envelope.ts')
  .mutant('a request id may have 129 characters', CONTRACT, 'has the id of its request')
  .change('{1,128}', '{1,129}')
  .in('src/api/cors.ts')
  .mutant('every page may read answers', CORS, 'for any other page')
  .change('named.has(origin)', 'named.size > 0')
  .mutant('pages of the same site count as the own page', CORS, 'logins that other pages make')
  .change("site !== 'same-origin' && site !== 'none'", "site === 'cross-site'")
  .mutant('without TLS every page may log in', CORS, 'logins that other pages make')
  .change('if (!origin) return false;', 'if (host) return false;')
  .mutant('the own page cannot log in if a proxy adds the port', CORS, 'logins that other pages make')
  .change(')?.host !== page.host', ') === null || host !== page.host')
  .in('src/api/app.ts')
  .mutant('a compressed body gets 400', CONTRACT, 'rule 7: a compressed body')
  .change('if (isUnread && COMPRESSED', 'if (false && COMPRESSED')
  .mutant('pages of CORS_ORIGINS cannot log in', CORS, 'logins that other pages make')
  .change('cors !== undefined || !isOfOtherOrigin', '!isOfOtherOrigin')
  .mutant('a login that another page sends counts', CORS, 'logins that other pages make')
  .change(
    'return isAllowed ? handler(exchange, parts) : answers.ORIGIN_NOT_ALLOWED;',
    'return handler(exchange, parts).then((answer) => (isAllowed ? answer : answers.ORIGIN_NOT_ALLOWED));',
  )
  .mutant('an empty segment is an id', CONTRACT, 'unknown paths return 404')
  .change('[^/]+/;', '[^/]*/;')
  .in('src/http/host.ts')
  .mutant('a Host that begins like this machine is served', HOST, 'on every port')
  .change('(?::\\\\d*)?$`', '(?::\\\\d*)?`')
  .in('docs/openapi/responses.ts')
  .mutant(
    'the description has no Retry-After with 429',
    DOCUMENTATION,
    'what the documents have from the code',
  )
  .change("  429: ['Retry-After'],\n", '').all;
