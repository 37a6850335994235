// Requests that wait for a change and wake together (rule H3), with reads that the test stands in for.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readChanges } from '../../src/api/history.ts';
import { Followers } from '../../src/books/followers.ts';
import { StoreUnavailable } from '../../src/books/store.ts';
import { TIMES } from '../../src/times.ts';
import { exchangeOf, partsWith, requestWith } from '../fuzz/bodies.ts';
import { settled, VirtualTime } from '../support/virtual-time.ts';

const WAIT = 60_000;

/** Followers whose changes the test makes, and whose reads it ends. */
class Waiting {
  #change = () => {};
  isWatched = false;
  readonly followers = new Followers<string>(
    (onChange) => {
      this.#change = onChange;
      this.isWatched = true;
      return () => {
        this.isWatched = false;
      };
    },
    (answer) => answer !== '',
    () => this.room(),
  );
  /** What is being read. */
  readonly reads: { readonly what: string; readonly end: (answer: string) => void; fail(): void }[] = [];
  readonly answers: string[] = [];
  room: () => Promise<void> = async () => {};

  ask(what: string, wait = WAIT): Promise<{ answer: string; waited: number }> {
    const read = () => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const fail = () => reject(new StoreUnavailable('the store is away'));
      this.reads.push({ what, end: resolve, fail });
      return promise;
    };
    const asked = this.followers.read(what, read, wait, new AbortController().signal);
    void asked.then(({ answer }) => this.answers.push(answer)).catch(() => {});
    return asked;
  }

  /** Ends the reads in progress, and those that follow. */
  async endReads(answer: (what: string) => string): Promise<string[]> {
    const read: string[] = [];
    for (let next = this.reads.shift(); next !== undefined; next = this.reads.shift()) {
      read.push(next.what);
      next.end(answer(next.what));
      for (let turn = 0; turn < 2000 && this.reads.length === 0; turn += 1) await settled();
    }
    return read;
  }

  async change(): Promise<void> {
    this.#change();
    await settled();
  }
}

describe('requests that wait for a change', () => {
  test('rule H3: a thousand that wake read the same page once, and each is answered in a separate turn', async () => {
    const waiting = new Waiting();
    const asked = Array.from({ length: 1000 }, () => waiting.ask('page'));
    await settled();
    assert.deepEqual(await waiting.endReads(() => ''), ['page']);
    await waiting.change();
    assert.equal(waiting.reads.length, 1);
    waiting.reads.shift()?.end('changed');
    for (let turn = 1; turn <= 100; turn += 1) await settled();
    assert.ok(
      waiting.answers.length > 0 && waiting.answers.length <= 102,
      `${waiting.answers.length} answers`,
    );
    const answers = await Promise.all(asked);
    assert.ok(answers.every(({ answer }) => answer === 'changed'));
  });

  test('rule H3: the store is watched until the last one has its answer', async () => {
    const waiting = new Waiting();
    const asked = ['a', 'b'].map((what) => waiting.ask(what));
    await settled();
    await waiting.endReads((what) => (what === 'a' ? 'found' : ''));
    await asked[0];
    assert.equal(waiting.isWatched, true);
    await waiting.change();
    await waiting.endReads(() => 'found');
    await asked[1];
    assert.equal(waiting.isWatched, false);
  });

  test('rule H3: different pages are read one after the other, once there is room for each', async () => {
    const waiting = new Waiting();
    const asked = ['a', 'b', 'c'].map((what) => waiting.ask(what));
    await settled();
    assert.deepEqual(await waiting.endReads(() => ''), ['a', 'b', 'c']);
    const free = Promise.withResolvers<void>();
    waiting.room = () => free.promise;
    await waiting.change();
    for (let turn = 1; turn <= 10; turn += 1) await settled();
    assert.equal(waiting.reads.length, 0, 'there is no room');
    free.resolve();
    for (let turn = 1; turn <= 10; turn += 1) await settled();
    assert.equal(waiting.reads.length, 1, 'one at a time');
    assert.deepEqual(await waiting.endReads((what) => `${what} changed`), ['a', 'b', 'c']);
    const answers = await Promise.all(asked);
    const given = answers.map(({ answer }) => answer);
    assert.deepEqual(given, ['a changed', 'b changed', 'c changed']);
  });

  test('rules H3 and 23: without room until its wait ends, a request has the page of before, and none that has read nothing', async () => {
    const time = new VirtualTime();
    await time.during(async () => {
      const waiting = new Waiting();
      const first = waiting.ask('a');
      await settled();
      waiting.reads.shift()?.end('');
      for (let turn = 1; turn <= 10; turn += 1) {
        await settled();
        if (time.isBusy) time.pass();
      }
      waiting.room = () => new Promise(() => {});
      await waiting.change();
      const second = waiting.ask('b');
      for (const end = time.now + WAIT; time.now < end; ) {
        time.pass(end - time.now);
        await settled();
      }
      await assert.rejects(second, StoreUnavailable);
      assert.equal((await first).answer, '');
      assert.equal(waiting.followers.count, 0);
    });
  });

  test('rule 23: a read that fails is not repeated for those that wait behind it', async () => {
    const waiting = new Waiting();
    const asked = ['a', 'b'].map((what) => waiting.ask(what));
    await settled();
    waiting.reads.shift()?.fail();
    for (const answer of asked) await assert.rejects(answer, /the store is away/);
    const again = waiting.ask('a');
    await settled();
    assert.deepEqual(await waiting.endReads(() => 'found'), ['a']);
    assert.equal((await again).answer, 'found');
  });

  test('rule 22: those that have read the same page share its bytes', async () => {
    const page = { changes: [{ id: 1, at: 0, book: undefined }], cursor: [1] };
    const parts = partsWith({ catalogue: { changes: async () => ({ page, waited: 0 }) }, times: TIMES });
    const [one, other] = await Promise.all(
      [1, 2].map(() => readChanges(exchangeOf(requestWith({ prefer: 'wait=60' }, 0, [])), parts)),
    );
    assert.ok(one?.body instanceof Uint8Array);
    assert.equal(one.body, other?.body);
  });
});
