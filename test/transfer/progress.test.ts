// How progress is shown, on a terminal of a given width and in a pipe. The terminal only records what is written to it.
// The clock is simulated, since a pipe gets a line only every ten seconds.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Progress } from '../../src/terminal/progress.ts';

const UTF_8 = { LANG: 'de_DE.UTF-8' };
const CLEAR = '\r\u001b[K';

describe('progress', () => {
  test('a terminal has one line, drawn at most ten times a second, and cleared at the end', (context) => {
    const clock = startClock(context);
    const { screen, written } = open({ isTTY: true, columns: 80, env: UTF_8 });
    const progress = new Progress(screen, 'books', 1000);
    for (let done = 0; done <= 620; done += 1) {
      clock.milliseconds = done * 5;
      progress.at(done, done * 1000);
    }
    assert.equal(written.length, 31);
    assert.equal(written.at(-1), `${CLEAR}███████████████░░░░░░░░░ 62 %  620,000 books  200,000/s  2 s left`);
    progress.end();
    assert.equal(written.at(-1), CLEAR);
    progress.end();
    assert.equal(written.length, 32);
  });

  test('lines that are printed meanwhile are above it', (context) => {
    const clock = startClock(context);
    const { screen, written } = open({ isTTY: true, columns: 80, env: UTF_8 });
    const progress = new Progress(screen, 'books');
    progress.line('early');
    clock.milliseconds = 1000;
    progress.at(500);
    progress.line('books.csv:17: refused');
    progress.line('books.csv:18: refused');
    clock.milliseconds = 2000;
    progress.at(1000);
    progress.end();
    assert.deepEqual(written, [
      'early\n',
      `${CLEAR}500 books  500/s`,
      CLEAR,
      'books.csv:17: refused\n',
      'books.csv:18: refused\n',
      `${CLEAR}1,000 books  500/s`,
      CLEAR,
    ]);
  });

  test('it is never wider than the terminal, and plain if the terminal is', (context) => {
    const clock = startClock(context);
    const lines = [
      [72, '############............ 50 %  5,000 books  500/s  10 s left'],
      [60, '50 %  5,000 books  500/s  10 s left'],
      [30, '50 %  5,000 books  500/s'],
      [20, '50 %  5,000 books'],
      [8, '50 %'],
      [4, '50 '],
    ] as const;
    for (const [columns, line] of lines) {
      clock.milliseconds = 0;
      const { screen, written } = open({ isTTY: true, columns, env: {} });
      const progress = new Progress(screen, 'books', 1_000_000);
      clock.milliseconds = 10_000;
      progress.at(500_000, 5000);
      assert.deepEqual(written, [CLEAR + line]);
    }
  });

  test('a pipe, and a terminal that cannot clear a line, get a plain line every ten seconds', (context) => {
    const clock = startClock(context);
    for (const { isTTY, env } of [
      { isTTY: false, env: UTF_8 },
      { isTTY: true, env: { ...UTF_8, TERM: 'dumb' } },
    ]) {
      clock.milliseconds = 0;
      const { screen, written } = open({ isTTY, columns: 80, env });
      const progress = new Progress(screen, 'books', 40_000);
      for (let second = 0; second <= 25; second += 1) {
        clock.milliseconds = second * 1000;
        progress.at(second);
      }
      progress.line('a line');
      progress.end();
      assert.deepEqual(written, [
        '0 %  10 books  1/s  11 h 7 min left\n',
        '0 %  20 books  1/s  11 h 6 min left\n',
        'a line\n',
      ]);
    }
  });
});

function open(screen: { isTTY: boolean; columns: number; env: Record<string, string> }) {
  const written: string[] = [];
  const write = (text: string | Uint8Array) => {
    written.push(String(text));
    return true;
  };
  return { screen: { stderr: { ...screen, write }, env: screen.env }, written };
}

function startClock(context: TestContext): { milliseconds: number } {
  const clock = { milliseconds: 0 };
  context.mock.method(performance, 'now', () => clock.milliseconds);
  return clock;
}
