// Owns: rule M9: correcting books by a file with their ids and tags.

import { randomUUID } from 'node:crypto';
import { expectAnswer, expectEqual } from './complaint.ts';
import { tagIn } from './conditions.ts';
import { expectBooks, expectReport, post } from './imports.ts';
import { put } from './log.ts';
import { ofBoth, type Rule } from './rule.ts';
import type { Service } from './service.ts';

export const CORRECTIONS: readonly Rule[] = [
  ofBoth.writing(
    'M9, E1',
    'a row with the present tag of a book changes it, and others say why not',
    async (service) => {
      const mark = randomUUID();
      const [right, equal, late, gone, other] = [
        await create(service, `${mark} right`),
        await create(service, `${mark} equal`),
        await create(service, `${mark} late`),
        await create(service, `${mark} gone`),
        await create(service, `${mark} other`),
      ];
      await put(service, late.id, { author: 'theirs' });
      expectAnswer(await service.request('DELETE', `/book/${gone.id}`), { status: 200 });
      const rows = [
        'id,title,author,year,etag',
        `${right.id},${mark} right,,1815,${right.tag}`,
        `${equal.id},${mark} equal,,1801,`,
        `${late.id},${mark} late,,1815,${late.tag}`,
        `${gone.id},${mark} gone,,1815,${gone.tag}`,
        `${other.id},${mark} changed,,1801,`,
        `,${mark} new,,1900,`,
      ];
      const body = `${rows.join('\n')}\n`;
      const file = { ids: 'keep' };
      const counts = { rows: 6, new: 1, here: 1, changed: 1, refused: 3, changedSince: 2, conflicts: 1 };
      const checked = await post(service, '/import?name=tags.csv&dry-run', { body });
      const { rows: shown, refused, figures } = checked.data;
      expectReport(checked, { file, figures: counts });
      const [first] = shown.changed;
      expectEqual(
        [first?.line, first?.id, first?.before],
        [2, right.id, { year: 1801 }],
        'The change',
        checked.answer,
      );
      const why = refused.map(({ line, reason }: Refused) => `${line} ${reason.code}`).sort();
      expectEqual(why, ['4 changed-since', '5 removed-since', '6 id-taken'], 'The reasons', checked.answer);
      expectEqual(
        Number.isSafeInteger(figures.absent),
        true,
        'The books without a row are counted',
        checked.answer,
      );
      const before = ['# right,,1801', '# equal,,1801', '# late,theirs,1801', '# other,,1801'];
      await expectBooks(service, mark, before);

      const stored = await post(service, '/import?name=tags.csv', { body });
      expectReport(stored, { books: 2, figures: counts });
      const after = ['# right,,1815', ...before.slice(1), '# new,,1900'];
      await expectBooks(service, mark, after);
      const same = await post(service, '/import?on-conflict=change', { body });
      expectReport(same, { books: 1, figures: { changed: 1, conflicts: 0, here: 3 } });
      await expectBooks(service, mark, [...after.slice(0, 3), '# changed,,1801', ...after.slice(4)]);
      const added = `id,title,author,year\n${other.id},${mark} added,,1\n`;
      const more = await post(service, '/import?on-conflict=add', { body: added });
      expectReport(more, { books: 1, figures: { conflicts: 0 } });
      await expectBooks(service, mark, [
        ...after.slice(0, 3),
        '# changed,,1801',
        ...after.slice(4),
        '# added,,1',
      ]);
      const undo = await service.request('POST', '/undo', { body: { event: stored.data.import } });
      expectAnswer(undo, { status: 200, data: { ...undo.data, undone: 2, left: [] } });
    },
  ),
];

interface Refused {
  readonly line: number;
  readonly reason: { readonly code: string };
}

/** A new book, with its tag as a field of CSV. */
async function create(service: Service, title: string): Promise<{ id: number; tag: string }> {
  const answer = await service.request('POST', '/book', { body: { title, year: 1801 } });
  expectAnswer(answer, { status: 201 });
  return { id: answer.data.id, tag: `"${tagIn(answer).replaceAll('"', '""')}"` };
}
