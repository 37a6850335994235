// Owns: building the librarians' page: its programs, a style sheet and index.html, by esbuild.
// Does not: run in an installation that has the page of its sources; the single executable and the image lack esbuild.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { PROJECT } from '../project.ts';

export interface Page {
  /** Files that it was built from, as paths in the project. */
  readonly sources: readonly string[];
  /** `digestOf` the sources. */
  readonly digest: string;
  /** The digest of the built files. */
  readonly version: string;
  readonly files: readonly PageFile[];
}

export interface PageFile {
  /** Path of its URL, and its query if that belongs to it. */
  readonly path: string;
  /** Its media type. */
  readonly type: string;
  readonly text: string;
  /** The text as these content codings, in base64. */
  readonly gzip: string;
  readonly br: string;
}

const INDEX = 'page/index.html';

/** Built files, by their names, from paths in the project. `main` loads `import` when its dialog is opened. */
const ENTRIES = {
  main: 'page/main.ts',
  import: 'page/import/dialog.ts',
  page: 'page/styles.css',
  slash: 'page/slash.ts',
  texts: 'page/texts/page.ts', // of index.html
};

/** The digest of files, which are paths in the project. */
export function digestOf(sources: readonly string[]): string {
  return digest(sources.flatMap((path) => [path, readSource(path)]));
}

/** @throws Error if esbuild is missing, or a source is wrong. */
export async function buildPage(): Promise<Page> {
  const { buildSync } = await import('esbuild');
  const { outputFiles, metafile } = buildSync({
    absWorkingDir: fileURLToPath(PROJECT),
    entryPoints: ENTRIES,
    outdir: '.',
    write: false,
    metafile: true,
    bundle: true,
    minify: true,
    format: 'esm',
    tsconfigRaw: {}, // the files of it are not in the image
    logLevel: 'silent', // the error has it all
  });
  const { 'texts.js': texts = '', ...built } = Object.fromEntries(
    outputFiles.map(({ path, text }) => [basename(path), text]),
  );
  const index = await withTexts(readSource(INDEX), texts);
  const version = digest([index, ...Object.entries(built).flat()]);
  const sources = [INDEX, ...Object.keys(metafile.inputs)];
  const html = index.replace('"?slash"', `"?slash=${version}"`).replaceAll('"v/', `"v/${version}/`);
  return {
    sources,
    digest: digestOf(sources),
    version,
    files: await Promise.all([
      fileOf('/', 'text/html', html),
      ...Object.entries(built).map(([name, text]) => {
        // A browser finds the script at a query wherever it has found the page. Others may be kept for ever by their path.
        const path = name === 'slash.js' ? `/?slash=${version}` : `/v/${version}/${name}`;
        return fileOf(path, name.endsWith('.css') ? 'text/css' : 'text/javascript', text);
      }),
    ]),
  };
}

/**
 * Writes the texts into index.html, each at its name in two braces.
 * @param module that exports their table.
 */
async function withTexts(index: string, module: string): Promise<string> {
  const { PAGE } = (await import(`data:text/javascript,${encodeURIComponent(module)}`)) as {
    readonly PAGE: Readonly<Record<string, string>>;
  };
  return index.replace(/\{\{(\w+)\}\}/g, (_, name) => {
    const text = PAGE[name];
    if (text === undefined) throw new Error(`${INDEX} has {{${name}}}, and its texts have no such name`);
    return text;
  });
}

export async function fileOf(path: string, type: string, text: string): Promise<PageFile> {
  const [zipped, br] = await Promise.all([
    promisify(gzip)(text, { level: 9 }),
    promisify(brotliCompress)(text),
  ]);
  return { path, type, text, gzip: zipped.toString('base64'), br: br.toString('base64') };
}

/** The first 16 hexadecimal digits of the SHA-256 of texts. */
export function digest(texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\0')).digest('hex').slice(0, 16);
}

function readSource(path: string): string {
  return readFileSync(new URL(path, PROJECT), 'utf8');
}
