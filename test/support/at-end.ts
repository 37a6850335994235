// Owns: what is done at the end of a test, or of the suite or file whose hook starts something; outside of tests, nothing is.

import { getTestContext, type SuiteContext, type TestContext } from 'node:test';

const ends = new WeakMap<TestContext | SuiteContext, AsyncDisposableStack>();

/** @param work is done after that of later calls. What it ends may have ended before. */
export function atEnd(work: () => unknown): void {
  const context = getTestContext();
  if (context === undefined || !('after' in context)) return;
  let end = ends.get(context);
  if (end === undefined) {
    end = new AsyncDisposableStack();
    ends.set(context, end);
    context.after(() => end?.disposeAsync());
  }
  end.defer(async () => void (await work()));
}
