// The command `ready`, which waits for a service.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runCommand, startHere } from '../support/command.ts';
import { inTime } from '../support/in-time.ts';
import { operationsOf } from '../support/operations.ts';
import { listen } from '../support/ports.ts';
import { ENVIRONMENT, endOf, spawnService, temporaryFolder } from '../support/service.ts';

/** Milliseconds after which `ready` gives up. */
const READY_TIMEOUT = 4000;

describe('commands', { concurrency: 3 }, () => {
  test('ready: exits with code 0 if the service is ready', async (context) => {
    const env = { ...ENVIRONMENT, ADMIN_PORT: '0', DB_URL: `sqlite:${temporaryFolder()}/books.db` };
    const service = await startHere({ ...env, LOG_LEVEL: 'info' });
    context.after(() => service.stop());
    const ADMIN_PORT = String(operationsOf(service).port);
    const ready = { code: 0, stdout: 'ready\n', stderr: '' };
    await inTime(READY_TIMEOUT, async (startClock) => {
      startClock();
      for (const ADMIN_HOST of ['127.0.0.1', '0.0.0.0', 'localhost']) {
        assert.deepEqual(await runCommand(['ready'], { ...env, ADMIN_PORT, ADMIN_HOST }), ready);
      }
      assert.deepEqual(await endOf(spawnService({ ...env, ADMIN_PORT }, ['ready'])), ready);
    });
  });

  test('ready: exits with code 1 if there is no answer', async (context) => {
    const { port } = await listen(context, (socket) => socket.destroy());
    const { code, stdout, stderr } = await runCommand(['ready'], {
      ...ENVIRONMENT,
      ADMIN_PORT: String(port),
    });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, new RegExp(`^No answer at ADMIN_HOST 127.0.0.1, ADMIN_PORT ${port}: [^\\n]+\\n$`));
  });
});
