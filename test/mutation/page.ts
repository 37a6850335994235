// Owns: mutants of the librarians' page: its port, its files and their policy.

import type { Mutant } from './mutant.ts';

const FILES = 'test/page/files.test.ts';
const PORT = 'test/page/port.test.ts';
const COMPILE = 'test/process/compile.test.ts';

export const PAGE_MUTANTS: readonly Mutant[] = [
  {
    name: 'the port of the service has the page, too',
    file: 'src/api/app.ts',
    from: 'service: newServer(undefined)',
    to: 'service: newServer(new PageFiles(parts.knownLogin))',
    test: { file: FILES, name: 'as if there were no page', store: 'SQLite' },
  },
  {
    name: 'the files of the page are served to every host',
    file: 'src/api/app.ts',
    from: 'else if (isMisdirected) answer',
    to: 'else if (isMisdirected && files === undefined) answer',
    test: { file: 'test/api/host.test.ts', name: 'on every port', store: 'SQLite' },
  },
  {
    name: 'a request that changes something gets the page',
    file: 'src/page/files.ts',
    from: "(method === 'GET' || method === 'HEAD') && ",
    to: '',
    test: { file: FILES, name: 'nothing else is served', store: 'SQLite' },
  },
  {
    name: 'other pages may show the page in a frame',
    file: 'src/page/files.ts',
    from: '  "frame-ancestors \'none\'",\n',
    to: '',
    test: { file: FILES, name: 'the headers of index.html', store: 'SQLite' },
  },
  {
    name: 'a worker has no policy',
    file: 'src/page/strip.ts',
    from: 'started.has(path)',
    to: 'false',
    test: { file: FILES, name: 'the headers of every other file', store: 'SQLite' },
  },
  {
    name: 'a browser that refuses Brotli gets it',
    file: 'src/page/files.ts',
    from: 'return found !== undefined && ',
    to: 'return found !== undefined || ',
    test: { file: FILES, name: 'files are compressed', store: 'SQLite' },
  },
  {
    name: 'modules are found one after the other',
    file: 'src/page/strip.ts',
    from: 'const preloaded = reach(modules, [IMPORTED]);',
    to: 'const preloaded = reach(modules, []);',
    test: { file: FILES, name: 'every file that it leads to', store: 'SQLite' },
  },
  {
    name: 'the page of an older version is served',
    file: 'src/page/files.ts',
    from: 'if (IS_EXECUTABLE || page.digest === digestOf(page.sources)) return page;',
    to: 'return page;',
    test: { file: COMPILE, name: 'a source is newer', store: 'SQLite' },
  },
  {
    name: 'a page that could not be made is never tried again',
    file: 'src/page/files.ts',
    from: '      this.#assets = undefined; // too many files were open at that moment, for example\n',
    to: '',
    test: { file: COMPILE, name: 'until they can', store: 'SQLite' },
  },
  {
    name: 'the service does not start if the default port of the page is in use',
    file: 'src/service.ts',
    from: 'config.page.required ||',
    to: 'true ||',
    test: { file: PORT, name: 'the service runs without it, WORKERS=1', store: 'SQLite' },
  },
];
