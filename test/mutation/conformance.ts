// Owns: mutants of the conformance kit: rules that a wrong service keeps, and the safety of the command `verify`.

import { Mutants } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const VERIFY = 'test/verify/verify.test.ts';
const WRONG = 'test/nightly/wrong-services.test.ts';

export const CONFORMANCE_MUTANTS = new Mutants()
  .in('conformance/answers.ts')
  .mutant('the kit holds answers of any size', VERIFY, 'hold no more than the limit together')
  .change('this.#size + size <= this.#limit;', 'this.#size <= this.#limit + size;')
  .mutant('the kit reads the sizes of chunks as decimal numbers', CONTRACT, 'does not cut the list short')
  .change('Number.parseInt(this.#rest, 16)', 'Number.parseInt(this.#rest, 10)')
  .mutant('the kit takes an interim answer for the answer', CONTRACT, 'expects 100 Continue')
  .change('if (status >= 200) this.#head', 'if (status >= 100) this.#head')
  .mutant('the kit ends an answer before its body is there', CONTRACT, 'does not cut the list short')
  .change('if (this.#rest.length < before + size + after) return false;', '')
  .in('conformance/bodies.ts')
  .mutant('a field of a wrong type may be stored', WRONG, 'null is an empty text: found out')
  .change('const kept = await', 'if (bodies.length > 0) return;\n  const kept = await')
  .mutant('years of 32 bits are enough', WRONG, 'a year has 32 bits: found out')
  .change('      YEARS.map(', '      YEARS.filter(([, year]) => Math.abs(year) < 2 ** 31).map(')
  .mutant('texts may be normalized', WRONG, 'texts are normalized: found out')
  .change('NAUGHTY.map(', 'NAUGHTY.slice(0, 9).map(')
  .in('conformance/changes.ts')
  .mutant('a link to changes may have any limit', WRONG, 'a link to changes lacks the limit: found out')
  .change('next.startsWith(beginning) && /^[^&', "next.includes('cursor=') || /^[^&")
  .mutant('times of changes may have any form', WRONG, 'times are numbers: found out')
  .change('TIME.test(at) && !Number.isNaN(Date.parse(at))', 'Boolean(at)')
  .mutant('a wait may end at once', WRONG, 'a wait ends at once: found out')
  .change('expect(took > 900,', 'expect(took > 0,')
  .mutant('each change may be a state', WRONG, 'each PUT is a state: found out')
  .change("(await history(service, id)).length, 1, 'The", "1, 1, 'The")
  .in('conformance/undo.ts')
  .mutant('a replayed undo need not be marked', WRONG, 'a replayed undo is not marked: found out')
  .change(
    "expectEqual(answer.headers.get('idempotent-replayed'), 'true', 'idempotent-replayed', answer);",
    '',
  )
  .in('conformance/checking.ts')
  .mutant('a service without the log of changes is wrong', VERIFY, 'H6: the rules of the log')
  .change('!(await isLogged())', '(await isLogged()) === undefined')
  .mutant('verify writes although it may not', VERIFY, 'writes nothing unless')
  .change('rule.writes && !mayWrite', '!rule.writes && mayWrite')
  .mutant('verify leaves its books in the store', VERIFY, 'its reader leaves')
  .change('await service.removeStored();', '')
  .mutant('verify does not stop after a signal', VERIFY, 'stops between two rules')
  .change('isStopped()\n', 'isStopped() && false\n')
  .mutant('verify asks a silent service for hours', VERIFY, 'answers nothing in time')
  .change('isUnanswered ? unanswered + 1 : 0', '0')
  .mutant('the rules of the whole contract are checked at level core', VERIFY, 'writes nothing unless')
  .change("level === 'core' && rule.level === 'full'", "level !== 'core' && rule.level === 'full'")
  .mutant('verify changes the book with the largest id', VERIFY, 'the largest id')
  .change('await service.findNoBook();', '')
  .mutant('a complaint lacks its request', VERIFY, 'without a request')
  .change("error instanceof Complaint && error.request !== ''", 'error instanceof Complaint || true')
  .in('conformance/command.ts')
  .mutant('verify succeeds although a rule failed', VERIFY, 'shows the request and the answer')
  .change(" || verdicts.some(({ result }) => result === 'failed')", '')
  .mutant('verify succeeds although it was stopped', VERIFY, 'stops between two rules')
  .change('return isStopped || lost', 'return lost')
  .mutant('verify signs tokens for another service', VERIFY, 'gets no token that the secret signs')
  .change('&& !isSecretOf(service)', '&& isSecretOf(service) && false')
  .mutant('verify takes a URL with a password', VERIFY, 'is called wrongly')
  .change('|| url.href !==', '|| url.protocol ===')
  .mutant('verify takes a name without its password', VERIFY, 'is called wrongly')
  .change('(username === undefined) !== (password === undefined)', 'username === undefined && password')
  .mutant('a report that cannot be written is a success', VERIFY, 'cannot be written is no success')
  .change("lost !== undefined && lost.code !== 'EPIPE'", "lost?.code === 'EPIPE'")
  .mutant('verify breaks off when its reader leaves', VERIFY, 'its reader leaves')
  .change("stdout.on('error', stopChecking);", '')
  .in('conformance/complaint.ts')
  .mutant('answers may have other messages', WRONG, '404 Book not found: another message: found out')
  .change('message === expected.message)', 'typeof message === "string")')
  .mutant('answers may have other data', WRONG, 'title and author are exchanged: found out')
  .change('isDeepStrictEqual(data, expected.data));', 'typeof data === typeof expected.data);')
  .mutant('answers may have other statuses', WRONG, '404 Book not found: another status: found out')
  .change('status === expected.status &&', 'status !== undefined &&')
  .mutant('a report shows the token', VERIFY, 'without the token and the password')
  .change('return text\n    .replace(/\\beyJ', 'return text;\n  text\n    .replace(/\\beyJ')
  .mutant('a report shows the password', VERIFY, 'the password of a login')
  .change('.replace(/("password" *: *)"(?:[^"\\\\]|\\\\.)*"?/g, \'$1"…"\')', '')
  .mutant('an answer controls the terminal of its reader', VERIFY, 'answers otherwise')
  .change('.replace(/[^\\P{C}\\n]|[\\u2028\\u2029]/gu,', '.replace(/[\\u2028\\u2029]/gu,')
  .in('conformance/conditions.ts')
  .mutant('etags may be weak', WRONG, 'etags are weak: found out')
  .change('/^"[\\x21\\x23-\\x7e]+"$/', '/"[\\x21\\x23-\\x7e]+"$/')
  .mutant('one etag may stand for several states', WRONG, 'the etag leaves out the author: found out')
  .change('!tags.has(tagIn(answer))', "tagIn(answer) !== ''")
  .mutant('If-Match may compare weakly', WRONG, 'If-Match compares weakly: found out')
  .change(
    '...unreadable]) {\n        expectAnswer(await change(',
    "...unreadable].filter((text) => !text.includes('W/'))) {\n        expectAnswer(await change(",
  )
  .in('conformance/connection.ts')
  .mutant('a connection may end by a reset', WRONG, 'a refusal resets its connection: found out')
  .change('if (failure !== undefined) throw', 'if (failure?.message === "") throw')
  .mutant('no answer to bytes is an answer', VERIFY, 'hangs: the limit is reported')
  .change('() => reject(this.#complaint(`no whole', '() => resolve(void this.#complaint(`no whole')
  .in('conformance/endpoints.ts')
  .mutant('a rule that writes is checked although verify may not write', VERIFY, 'writes nothing unless')
  .change("core.writing(\n    'U3',", "core(\n    'U3',")
  .mutant('a token may last for any time', WRONG, 'a token lasts an hour: found out')
  .change('Math.abs(ahead - LIFETIME) <= CLOCK', 'ahead > 0')
  .mutant('a token may name its user', WRONG, 'a token names its user: found out')
  .change("expectEqual(others, {}, 'The claims of the token beside exp', answer);", 'void others;')
  .mutant('any username may log in', WRONG, 'every username logs in: found out')
  .change('x`, password }), WRONG_LOGIN);', "x`, password: '' }), WRONG_LOGIN);")
  .mutant('pages of other origins may log in', WRONG, 'pages of other origins log in: found out')
  .change('expectAnswer(await send(headers), FOREIGN_PAGE,', 'String(await send(headers), FOREIGN_PAGE,')
  .mutant('failed logins need no limit', WRONG, 'failed logins are not limited: found out')
  .change('checked.length <= GUESSES / 2 && seconds > WAITING - 1;', 'checked.length <= GUESSES;')
  .mutant('an id may be spelled with a zero before it', WRONG, 'zeros before an id are ignored: found out')
  .change('const spellings = [`0', 'const spellings = [`x')
  .mutant('a change may be answered with another book', WRONG, 'PUT returns another title: found out')
  .change(
    '{ body }), updated(book));\n        await readBack(service, book);',
    '{ body }), { status: 200 });\n        await readBack(service, book);',
  )
  .mutant(
    'the id of a removed book may be given again',
    WRONG,
    'the id of a removed book is used again: found out',
  )
  .change('expect(next.data?.id > id,', 'expect(next.data?.id > 0,')
  .mutant('the list may have any order', WRONG, 'the list is descending: found out')
  .change(
    'await expectListed(service, (books) => books);\n    const ids = (await service.list()).map(({ id }) => id);',
    'const ids: number[] = [];',
  )
  .mutant('the list may lack books', WRONG, 'the list has ten books: found out')
  .change(
    "expectEqual(inOrder(await service.listed(author)), books, 'The",
    "expectEqual(inOrder(books), books, 'The",
  )
  .mutant('Allow may lack methods', WRONG, 'allow lacks HEAD: found out')
  .change("expectEqual(answer.headers.get('allow'), allow, 'allow', answer);", 'void allow;')
  .mutant('answers may be stored by caches', WRONG, 'answers may be stored: found out')
  .change("expectEqual(of('cache-control'), 'no-store', 'cache-control', answer);", '')
  .in('conformance/finding.ts')
  .mutant('books may be found in any order', WRONG, 'the order is always ascending: found out')
  .change("expectEqual(found, ids, 'The", "expectEqual(found.toSorted(), ids.toSorted(), 'The")
  .mutant('an invalid limit may be replaced', WRONG, 'limit=0 is accepted: found out')
  .change("  ['limit=0', 'limit'],\n", '')
  .mutant('the total may be missing', WRONG, 'no total: found out')
  .change("get('x-total-count'), total, 'x", "get('x-total-count') ?? total, total, 'x")
  .mutant('no book is removed during a walk', WRONG, 'pages continue by their number: found out')
  .change('if (id === undefined) continue;', 'if (id !== 0) continue;')
  .mutant('some letters need not be folded', WRONG, 'ƶ is not folded: found out')
  .change('[LETTERS.slice(0, 12), LETTERS.slice(12)].map(', '[LETTERS.slice(0, 12)].map(')
  .mutant('words may be found that are not there', WRONG, 'vowel signs are removed: found out')
  .change('[title, queries] of OTHER_WORDS)', '[title, queries] of OTHER_WORDS.slice(1))')
  .in('conformance/once.ts')
  .mutant('a replay need not be marked', WRONG, 'a replay is not marked: found out')
  .change(
    "expectAnswer(again, first);\n      expectEqual(again.headers.get('idempotent-replayed'), 'true', 'idempotent-replayed', again);",
    'expectAnswer(again, first);',
  )
  .mutant('a key may stand for any request', WRONG, 'keys do not look at the request: found out')
  .change(
    "other, key), KEY_USED);\n    }\n    expectAnswer(await post(service, '/books', [BOOKS[0]], key), KEY_USED);",
    'other, key), { status: 201 });\n    }',
  )
  .mutant('a request may have an invalid key', WRONG, 'any key is a key: found out')
  .change('for (const key of invalid) {', 'for (const key of invalid.slice(99)) {')
  .in('conformance/racing.ts')
  .mutant('an update may be lost', WRONG, 'PUT reads and then writes: found out')
  .change('retrieved({ id, ...fields }));\n      }', '{ status: 200 });\n      }')
  .in('conformance/report.ts')
  .mutant('a rule that failed is ok in TAP', VERIFY, 'shows the request and the answer')
  .change('return `not ok ', 'return `ok ')
  .mutant('a report hides the books that are left', VERIFY, 'shows the request and the answer')
  .change('if (left.length > 0) {', 'if (left.length > 1e6) {')
  .mutant('a run that was stopped is complete in TAP', VERIFY, 'stops between two rules')
  .change("isStopped ? 'Bail out! Stopped.' : ", '')
  .in('conformance/rule.ts')
  .mutant('no rule counts as one that writes', VERIFY, 'writes nothing unless')
  .change('{ writing: marked(true, false)', '{ writing: marked(false, false)')
  .in('conformance/service.ts')
  .mutant(
    'an answer may have other fields than an envelope',
    WRONG,
    '200 Book retrieved successfully: a field more',
  )
  .change("Object.keys(fields).toSorted().join() !== 'data,message,status'", "!('data' in fields)")
  .mutant('an envelope may have another status', WRONG, 'the envelope has another status: found out')
  .change('if (fields.status !== status)', 'if (fields.status === undefined)')
  .mutant('verify removes the book of another client', VERIFY, 'its key was used')
  .change(
    "if (status !== 201 || headers.has('idempotent-replayed')) return;",
    'if (status !== 201 || !headers) return;',
  )
  .mutant('verify leaves its books in a busy service', VERIFY, 'asks again for the removal')
  .change('while (status === 503 &&', 'while (status === 504 &&')
  .mutant('verify leaves its books in a service that demands conditions', VERIFY, 'demands a condition')
  .change('return status === 428 ?', 'return status === 429 ?')
  .mutant('verify is silent about books that it has left', VERIFY, 'shows the request and the answer')
  .change('if (status !== 200 && status !== 404) this.#left.push(id);', '')
  .mutant('verify judges a search that is not complete yet', VERIFY, 'not indexed all books')
  .change("get('x-unindexed-books') !== null", "get('x-unindexed-books') === ''")
  .mutant('verify takes an id that a book has for one that no book has', VERIFY, 'the largest id')
  .change('if (status !== 200 || below', 'if (status !== 404 || below')
  .mutant('verify does not say that a port has no TLS', VERIFY, 'answers otherwise')
  .change("if (fault === 'wrong version number')", "if (fault === '')")
  .in('conformance/tokens.ts')
  .mutant('a token may be unsigned', WRONG, 'a token without a signature: found out')
  .change("['none', `", "['none', `x")
  .mutant('a token may never expire', WRONG, 'tokens never expire: found out')
  .change("['expired', signer.of(", "['expired', String(")
  .mutant('the crit header of a token may be ignored', WRONG, 'crit is ignored: found out')
  .change('each(forms, (form) => {', 'each(forms.slice(99), (form) => {')
  .mutant('a signature may have other spellings', WRONG, 'other spellings of a signature: found out')
  .change('other !== token && signatureOf', "other === '' && signatureOf")
  .in('conformance/wire.ts')
  .mutant('a refusal may leave its connection open', WRONG, 'leaves its connection open: found out')
  .change(
    "expectEqual(answer?.headers.get('connection'), 'close', 'connection', answer);\n        expectEqual(others",
    'expectEqual(others',
  )
  .mutant('a truncated request may get any answer', WRONG, 'a truncated request gets 408: found out')
  .change('expectAnswer(answer, BAD_REQUEST);\n      await connection', 'await connection')
  .mutant('bytes may get any answer', WRONG, '1,001 header lines are read: found out')
  .change(
    'expectAnswer(answer, expected, about);',
    'expectAnswer(answer, { status: answer?.status ?? 0 }, about);',
  )
  .mutant('trailers may have any size', WRONG, 'trailers of 16 KiB are read: found out')
  .change(
    'expectStatuses(answers, [431]);\n    expectAnswer(answers[0], HEADERS_TOO_LARGE);',
    'expectEqual(answers.length, 1, bytes);',
  )
  .mutant('Upgrade may get any answer', WRONG, 'a request with Upgrade gets 426: found out')
  .change(
    "expectAnswer(answer, { status: 200, message: 'Book retrieved successfully' });",
    'void answer;',
  ).all;
