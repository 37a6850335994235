// Which module may import which: no circle, and no arrow between buildings and rooms but those of docs/architecture.md.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

/** Imports and exports from another module, of types too, and modules that are loaded later. */
const IMPORTED = /^(?:import|export)\b[^;']*?\bfrom '([^']+)'|\bimport\(\s*'([^']+)'\)/gm;

const FILES = globSync('{src,page,conformance,client/src}/**/*.ts', { cwd: pathTo('') });

/** What each module imports: paths in the repository, and other names as they are. */
const IMPORTS = new Map(
  FILES.map((file) => {
    const names = [...readFileSync(pathTo(file), 'utf8').matchAll(IMPORTED)].map(
      ([, now, later = '']) => now ?? later,
    );
    return [file, names.map((name) => (name.startsWith('.') ? join(dirname(file), name) : name))] as const;
  }),
);

test('no modules and no rooms import one another in a circle, not even for types', () => {
  assert.deepEqual(circleIn(IMPORTS), []);
  const rooms = new Map<string, string[]>();
  for (const [file, imported] of IMPORTS) {
    const others = imported.filter((name) => IMPORTS.has(name)).map(roomOf);
    const room = roomOf(file);
    rooms.set(room, [...(rooms.get(room) ?? []), ...others.filter((other) => other !== room)]);
  }
  assert.deepEqual(circleIn(rooms), []);
});

for (const [from, may] of [
  ['client/src/', /^client\/src\//],
  ['conformance/', /^(node:|conformance\/)/],
  ['page/', /^(page|client\/src|src\/books|src\/files)\/|^src\/operator-error\.ts$/],
  ['src/', /^(?!page\/|client\/|test\/|bench\/)/],
  ['src/(?!commands/verify\\.ts)', /^(?!conformance\/)/],
  ['src/(auth|books|json|metrics)/', /^(?!src\/(http|api|admin|page|stores)\/|node:https?$)/],
  ['src/(http|json|terminal)/', /^(?!src\/(api|books|files|stores)\/)/],
  ['src/stores/postgres/', /^(?!src\/stores\/sqlite\/)/],
  ['src/stores/sqlite/', /^(?!src\/stores\/postgres\/)/],
] as const) {
  test(`${from} imports only ${may.source}`, () => {
    const files = FILES.filter((file) => new RegExp(`^${from}`).test(file));
    assert.ok(files.length > 0);
    for (const file of files) for (const name of IMPORTS.get(file) ?? []) assert.match(name, may, file);
  });
}

test('export, import and copy load node:sqlite only for a store of SQLite', () => {
  const loaded = new Set(['export', 'import', 'copy'].map((name) => `src/commands/${name}.ts`));
  for (const file of loaded) {
    if (!FILES.includes(file)) continue;
    const atOnce = readFileSync(pathTo(file), 'utf8').matchAll(
      /^(?:import|export) (?!type )(?:[^;']*from )?'([^']+)'/gm,
    );
    for (const [, name = ''] of atOnce) loaded.add(name.startsWith('.') ? join(dirname(file), name) : name);
  }
  assert.ok(loaded.has('src/stores/open.ts'));
  assert.ok(!loaded.has('node:sqlite'));
});

/** A folder; a file of `src` that stands in none is a room by itself, and so is the door to both stores. */
function roomOf(file: string): string {
  return /^src\/(stores\/open|[\w-]+)\.ts$/.test(file) ? file : dirname(file);
}

/** @returns the names of one circle, in their order; none if there is no circle. */
function circleIn(imports: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const clear = new Set<string>();
  const walk = (name: string, path: readonly string[]): readonly string[] => {
    if (clear.has(name)) return [];
    if (path.includes(name)) return path.slice(path.indexOf(name));
    for (const next of imports.get(name) ?? []) {
      const circle = walk(next, [...path, name]);
      if (circle.length > 0) return circle;
    }
    clear.add(name);
    return [];
  };
  return [...imports.keys()].map((name) => walk(name, [])).find((circle) => circle.length > 0) ?? [];
}
