// Owns: rule F13: what GET /suggestions offers for a search that finds nothing. The rules store books whose words are random, so
// that no other word is near them.

import { randomBytes } from 'node:crypto';
import { expectAnswer, expectEqual } from './complaint.ts';
import { expectHead } from './pages.ts';
import { full, type Rule } from './rule.ts';
import type { Service } from './service.ts';
import { invalidParameter } from './words.ts';

const RETRIEVED = { status: 200, message: 'Suggestions retrieved successfully' };

/** Queries that are refused because of their first parameter. */
const REFUSED = 'sort=title limit=1 cursor=abc offset=1 page=1 q=a&q=b q=ha* year= q=%ff'.split(' ');

export const SUGGESTING: readonly Rule[] = [
  full.writing('rule F13', 'a misspelt word is corrected, as books spell it', async (service) => {
    const [start, end, other] = [wordOf(), wordOf(), wordOf()];
    const word = `${start}qz${end}`;
    const spelled = word.toUpperCase();
    for (const year of [1, 2, 3])
      await service.create({ title: `${year === 1 ? word : spelled} x`, author: `Ö${other}`, year });
    for (const misspelt of ['zq', 'q', 'qxz', 'xz', 'q z'].map((middle) => `${start}${middle}${end}`))
      await expectSuggested(service, { q: misspelt }, ['q', spelled, 3]);
    const misspelt = `${start}zq${end}`;
    await expectSuggested(service, { q: `${misspelt} ${other}` }, ['q', `${spelled} Ö${other}`, 3]);
    await expectSuggested(service, { q: `o${other}, ${misspelt}`, year: '3' }, [
      'q',
      `o${other}, ${spelled}`,
      1,
    ]);
    await expectSuggested(service, { author_contains: `o${other}`, title_contains: misspelt }, [
      'title_contains',
      spelled,
      3,
    ]);
    await expectSuggested(service, { title: `${misspelt} x` }, ['title', `${spelled} x`, 3]);
    await expectSuggested(service, { q: misspelt, year: '4' });
    await expectSuggested(service, { q: `${misspelt} ${wordOf()}` });
    await expectSuggested(service, { q: wordOf() });
    await expectSuggested(service, { q: word });
  }),
  full.writing('rule F13', 'of several corrections the three with the most books come', async (service) => {
    const word = wordOf();
    for (const [at, end] of [...'abbcccdddd'].entries())
      await service.create({ title: `${word}${end}`, year: at });
    const suggestions = ['d', 'c', 'b'].map((end, at) => ['q', `${word}${end}`, 4 - at] as const);
    await expectSuggested(service, { q: `${word}x` }, ...suggestions);
    await service.create({ title: `${word} and` });
    await expectSuggested(service, { q: `${word}and` }, ['q', `${word} and`, 1]);
    await expectHead(service, `/suggestions?q=${word}x`);
  }),
  full('rules F3 and F13', 'an invalid parameter gets 400 with its name', async (service) => {
    for (const query of REFUSED)
      expectAnswer(
        await service.request('GET', `/suggestions?${query}`),
        invalidParameter(query.replace(/=.*/, '')),
      );
    const answer = await service.request('GET', '/suggestions');
    expectAnswer(answer, RETRIEVED);
    expectEqual(answer.data, [], 'Suggestions without parameters', answer);
  }),
];

/** Fails unless exactly these suggestions come. */
async function expectSuggested(
  service: Service,
  search: Readonly<Record<string, string>>,
  ...suggestions: (readonly [parameter: string, value: string, books: number])[]
): Promise<void> {
  const answer = await service.search(`/suggestions?${new URLSearchParams(search)}`);
  expectAnswer(answer, RETRIEVED);
  const expected = suggestions.map(([parameter, value, books]) => ({ parameter, value, books }));
  expectEqual(answer.data, expected, 'data', answer);
}

/** A word of random letters. */
function wordOf(): string {
  return [...randomBytes(8)].map((byte) => 'bcdfghklmnprstvw'.charAt(byte % 16)).join('');
}
