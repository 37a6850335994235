// The suite of the contract once more, on the port of the librarians' page (rule 34), and a test that the suite really
// calls that port. One store is enough: it does not see the port.

import assert from 'node:assert/strict';
import { test } from 'node:test';

process.env.TEST_STORE ??= 'SQLite';
process.env.TEST_THROUGH_PAGE = 'yes';

const { SQLITE, startServiceProcess, startTestService } = await import('../support/service.ts');

test('rule 34: the suite of the contract calls the port of the page', async (context) => {
  for (const start of [startTestService, startServiceProcess]) {
    const service = await start(await SQLITE.freshUrl());
    context.after(() => service.stop());
    assert.equal(service.url, service.pageUrl);
    const page = await fetch(`${service.url}/`);
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    await page.text();
  }
});

for (const name of ['contract', 'parsing', 'conditions', 'once', 'model', 'list', 'concurrency', 'retries']) {
  await import(`../contract/${name}.test.ts`);
}
await import('../api/wire.test.ts');
