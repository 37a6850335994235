// Owns: `npm run build:binary`: dist/book-catalogue, the service as a single executable for the platform that runs this, and
// dist/LICENSES.txt, which goes with it.
// It is the Node.js that runs this, with the service as one module, and with the files that the service reads.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';
import { CACHE, readPage } from '../src/page/files.ts';
import { PROJECT, projectFiles } from '../src/project.ts';
import { version } from '../src/version.ts';
import { licencesOf } from './licences.ts';

export const ROOT = fileURLToPath(PROJECT);

/** The files that the service reads, as `readProjectFile` gets them. */
const FILES = [
  'deploy/book-catalogue.1',
  'docs/openapi/openapi.json',
  'node_modules/swagger-ui-dist/swagger-ui-bundle.js',
  'node_modules/swagger-ui-dist/swagger-ui.css',
  'src/admin/page/docs.html',
  'src/admin/page/docs.js',
  'src/demo/books.csv',
];

/** The folder of the site of this version, which `npm run build:site` makes; the service serves each file of it. */
const SITE = `site/dist/${version}`;

/** The programs of threads, as `threadProgram` gets them. */
const THREADS = ['src/import/thread.ts', 'src/stores/sqlite/checkpoints.ts', 'src/stores/sqlite/finder.ts'];

const MAIN = "import { runProcess } from './src/process.ts'; await runProcess();";

/**
 * The libraries are CommonJS and call `require`, which a module does not have, for modules of Node.js only. `createRequire`
 * would need the absolute path of the executable, which Node.js does not know without /proc.
 */
const REQUIRE = 'const require = process.getBuiltinModule;';

const OPTIONS: BuildOptions = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: 'node',
  target: 'node26',
  define: { 'import.meta.main': 'false' }, // no module but MAIN is a program here
  external: ['pg-native', 'esbuild'], // `pg` can make use of the one, and the page has been built by the other
};

/** Where `npm run build:binary` puts it. */
export const EXECUTABLE = join(
  ROOT,
  process.platform === 'win32' ? 'dist/book-catalogue.exe' : 'dist/book-catalogue',
);

/**
 * Makes the executable, and beside it LICENSES.txt.
 * @returns the text of that file: the licences of what is in the executable.
 */
export async function buildExecutable(): Promise<string> {
  mkdirSync(join(ROOT, 'dist'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'dist/build-'));
  try {
    const put = (path: string, content: string) => {
      mkdirSync(join(folder, path, '..'), { recursive: true });
      writeFileSync(join(folder, path), content);
    };
    const main = await bundle({
      stdin: { contents: MAIN, resolveDir: ROOT },
      format: 'esm',
      banner: { js: REQUIRE },
    });
    put('main.js', main.code);
    for (const path of THREADS) {
      put(path, (await bundle({ entryPoints: [path], format: 'cjs' })).code);
    }
    put(CACHE, JSON.stringify(await readPage()));

    const files = [...FILES, ...(await projectFiles(SITE)).sort()];
    const assets = {
      ...Object.fromEntries(files.map((path) => [path, join(ROOT, path)])),
      ...Object.fromEntries([...THREADS, CACHE].map((path) => [path, path])),
    };
    const config = {
      main: 'main.js',
      mainFormat: 'module',
      output: 'book-catalogue',
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
      assets,
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    // Paths within its folder, since the executable has them in it, and a fixed seed, on which its code cache depends:
    // equal sources give equal bytes.
    const args = ['--random-seed=1', '--build-sea', 'config.json'];
    execFileSync(process.execPath, args, { cwd: folder, stdio: 'inherit' });
    renameSync(join(folder, 'book-catalogue'), EXECUTABLE); // one that runs cannot be written, but replaced
    const licences = licencesOf([...main.inputs, ...FILES, ...librariesOfSite()]);
    writeFileSync(join(ROOT, 'dist/LICENSES.txt'), licences);
    return licences;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The folders of the libraries that are in the site, as paths in the project; none if it has not been made. */
export function librariesOfSite(): readonly string[] {
  const file = join(ROOT, 'site/dist/libraries.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
}

/**
 * One program of all modules that an entry point needs.
 * @returns it, and the files that are in it, as paths in the project.
 */
async function bundle(entry: BuildOptions): Promise<{ code: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build({ ...OPTIONS, ...entry, write: false, metafile: true });
  const [{ text = '' } = {}] = outputFiles;
  // esbuild leaves other characters than ASCII in regular expressions and comments, and one of them would double the memory
  // that V8 needs for the whole text.
  const code = text.replaceAll(/[^\0-\x7f]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return { code, inputs: Object.keys(metafile.inputs) };
}

if (import.meta.main) await buildExecutable();
