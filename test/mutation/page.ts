// Owns: mutants of the librarians' page: its port, its files and their policy.

import { Mutants } from './mutant.ts';

const FILES = 'test/page/files.test.ts';
const PORT = 'test/page/port.test.ts';
const COMPILE = 'test/nightly/compile.test.ts';
const HOST = 'test/api/host.test.ts';

export const PAGE_MUTANTS = new Mutants()
  .in('src/api/app.ts')
  .mutant('the port of the service also has the page', FILES, 'as if there were no page')
  .change('service: newServer(undefined)', 'service: newServer(new PageFiles(config.knownLogin))')
  .mutant('the files of the page are served to every host', HOST, 'on every port')
  .change('else if (isMisdirected) answer', 'else if (isMisdirected && files === undefined) answer')
  .in('src/page/files.ts')
  .mutant('a request that changes something gets the page', FILES, 'nothing else is served')
  .change("(method === 'GET' || method === 'HEAD') && ", '')
  .mutant('other pages may show the page in a frame', FILES, 'the headers of every file')
  .change('    "frame-ancestors \'none\'",\n', '')
  .mutant('a page without the slash of its path is dead', FILES, 'adds the slash to the address')
  .change('const asset = assets.get(', 'const asset = assets.get(path) ?? assets.get(')
  .mutant('a browser that refuses Brotli gets it', FILES, 'files are compressed')
  .change('return found !== undefined && ', 'return found !== undefined || ')
  .mutant('the page of an older version is served', COMPILE, 'a source is newer')
  .change('if (IS_EXECUTABLE || page.digest === digestOf(page.sources)) return page;', 'return page;')
  .mutant('a page that could not be made is never tried again', COMPILE, 'cannot be built')
  .change('      this.#assets = undefined; // too many files were open at that moment, for example\n', '')
  .in('src/page/build.ts')
  .mutant('a changed page has the URLs that browsers keep', COMPILE, 'a source is newer')
  .change('...built.flatMap(({ name, text }) => [name, text])', '')
  .in('src/listen.ts')
  .mutant(
    'the service does not start if the default port of the page is in use',
    PORT,
    'the service runs without it, WORKERS=1',
  )
  .change('if (isSet ||', 'if (true ||').all;
