// The limits of the wire that are set by variables. The other cases are in
// conformance/wire.ts. Titles name the rules of docs/contract.md.

import { describe, test } from 'node:test';
import { expectBodyLimit, expectHeaderLimit } from '../../conformance/wire.ts';
import { SQLITE, startTestService } from '../support/service.ts';
import { verifiedAt } from '../support/verified.ts';

describe('limits of the wire', () => {
  for (const [title, limit] of [
    ['a smaller BODY_LIMIT is the limit', 1000],
    ['a larger BODY_LIMIT is the limit', 1_500_000],
  ] as const) {
    test(`rule 22: ${title}`, async () => {
      const limited = await startTestService(await SQLITE.freshUrl(), { BODY_LIMIT: String(limit) });
      const verified = verifiedAt(limited);
      try {
        await verified.logIn();
        await expectBodyLimit(verified, limit);
      } finally {
        verified.close();
        await limited.stop();
      }
    });
  }

  test('rule 22: HEADER_LIMIT sets the limit', async () => {
    for (const limit of [2048, 100_000]) {
      const limited = await startTestService(await SQLITE.freshUrl(), { HEADER_LIMIT: String(limit) });
      const verified = verifiedAt(limited);
      try {
        await expectHeaderLimit(verified, limit);
      } finally {
        verified.close();
        await limited.stop();
      }
    }
  });
});
