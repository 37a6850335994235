// Owns: the full names of the tests in files, without running them: node names.ts FILE… prints them as JSON, by file.

import { registerHooks } from 'node:module';
import { pathTo } from './repository.ts';

const names: string[] = [];
const path: string[] = [];

/** Takes the place of `node:test`: suites are entered, tests are noted, and hooks do nothing. */
const collector = {
  describe: (name: string, ...rest: unknown[]) => {
    path.push(name);
    (rest.at(-1) as () => void)();
    path.pop();
  },
  test: (name: string) => names.push([...path, name].join(' ')),
};
Object.assign(globalThis, { collector });
const nothing = ['before', 'after', 'beforeEach', 'afterEach', 'getTestContext'].map(
  (name) => `export const ${name} = () => {};`,
);
const source = `export const { describe, test } = globalThis.collector; ${nothing.join(' ')}`;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'node:test'
      ? { url: `data:text/javascript,${encodeURIComponent(source)}`, shortCircuit: true }
      : next(specifier, context),
});

const found: Record<string, readonly string[]> = {};
for (const file of process.argv.slice(2)) {
  await import(pathTo(file));
  found[file] = names.splice(0);
}
process.stdout.write(JSON.stringify(found), () => process.exit());
