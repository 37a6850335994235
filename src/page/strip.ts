// Owns: the files of the librarians' page as a browser gets them: which files it needs, TypeScript without its types, and
// index.html with the URLs of the others. As a program it prints them, as JSON.
// Does not: run in the service: the compiler would stay in memory (40 MiB).

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { PROJECT } from '../project.ts';

export interface Page {
  /** Files that it was made from, as paths in the repository. */
  readonly sources: readonly string[];
  /** See `digestOf`. */
  readonly digest: string;
  /** What is served: index.html is the first. */
  readonly files: readonly PageFile[];
}

export interface PageFile {
  /** Path of its URL, and its query if that belongs to it. */
  readonly path: string;
  /** Its media type. */
  readonly type: string;
  /** Whether a browser begins with it, so that it needs a content policy: index.html, and the programs of workers. */
  readonly isFirst: boolean;
  readonly text: string;
  /** The text as these content codings, in base64. */
  readonly gzip: string;
  readonly br: string;
}

const FOLDER = 'page/';
const INDEX = `${FOLDER}index.html`;
const MAIN = `${FOLDER}main.ts`;

/** The script whose URL is a query, so that a browser finds it wherever it has found the page. */
const SLASH = `${FOLDER}slash.ts`;

/** Modules that a module needs before it runs, modules that it loads later, and programs of workers: relative paths. */
const IMPORTED = /\b(?:from|import)\s+'(\.\.?\/[^']+)'/g;
const LOADED_LATER = /\bimport\(\s*'(\.\.?\/[^']+)'/g;
const STARTED = /\bnew URL\(\s*'(\.\.?\/[^']+\.ts)',\s*import\.meta\.url\b/g;

/** Comments that fill whole lines; and templates, whose text may look like one. */
const COMMENT_OR_TEMPLATE = /^[ \t]*(?:\/\/.*|\/\*[\s\S]*?\*\/[ \t]*)$|`(?:[^`\\]|\\[\s\S])*`/gm;

/** The attributes of index.html that name files beside it. */
const LINKED = / (href|src)="([\w/-]+\.(?:css|ts))"/g;

/**
 * The first 16 hexadecimal digits of the SHA-256 of files.
 * @param sources paths in the repository.
 */
export function digestOf(sources: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of sources) hash.update(`${path}\0${readSource(path)}\0`);
  return hash.digest('hex').slice(0, 16);
}

function makePage(): Page {
  const modules = new Map<string, string>();
  const index = readSource(INDEX);
  const styles = [...index.matchAll(LINKED)].flatMap(([, , name = '']) => {
    return name.endsWith('.css') ? [`${FOLDER}${name}`] : [];
  });
  const preloaded = reach(modules, [IMPORTED]);
  reach(modules, [IMPORTED, LOADED_LATER, STARTED]);
  const started = new Set([...modules].flatMap(([path, text]) => references(path, text, STARTED)));
  const sources = ['src/page/strip.ts', INDEX, SLASH, ...styles, ...modules.keys()];
  const digest = digestOf(sources);

  // The URLs of all files but index.html begin with their version, so that a browser may keep them for ever.
  const version = `v/${digest}/`;
  const preloads = preloaded.map((path) => `<link rel="modulepreload" href="${version}${path}">`);
  const page = index
    .replace('src="slash.ts"', `src="?slash=${digest}"`)
    .replaceAll(LINKED, ` $1="${version}${FOLDER}$2"`)
    .replace('</head>', `${preloads.join('')}</head>`);
  return {
    sources,
    digest,
    files: [
      fileOf('/', 'text/html', page, true),
      fileOf(`/?slash=${digest}`, 'text/javascript', textOf(SLASH), false),
      ...styles.map((path) =>
        fileOf(`/${version}${path}`, 'text/css', withoutComments(readSource(path)), false),
      ),
      ...[...modules].map(([path, text]) => {
        return fileOf(`/${version}${path}`, 'text/javascript', text, started.has(path));
      }),
    ],
  };
}

function fileOf(path: string, type: string, text: string, isFirst: boolean): PageFile {
  const gzip = gzipSync(text, { level: 9 }).toString('base64');
  const br = brotliCompressSync(text).toString('base64');
  return { path, type, isFirst, text, gzip, br };
}

/**
 * The modules that main.ts reaches by some kinds of references, itself included.
 * @param modules gets their texts, by their paths, as a browser gets them.
 */
function reach(modules: Map<string, string>, kinds: readonly RegExp[]): string[] {
  const paths = new Set([MAIN]);
  for (const path of paths) {
    const text = modules.get(path) ?? textOf(path);
    modules.set(path, text);
    for (const found of kinds.flatMap((kind) => references(path, text, kind))) paths.add(found); // which are also visited
  }
  return [...paths];
}

/** A program as a browser gets it. */
function textOf(path: string): string {
  return withoutComments(stripTypeScriptTypes(readSource(path)));
}

/** The paths in the repository to which a module refers. */
function references(path: string, text: string, kind: RegExp): string[] {
  return [...text.matchAll(kind)].map(([, reference = '']) => {
    return new URL(reference, new URL(path, 'file:///')).pathname.slice(1);
  });
}

/** Keeps the line ends, so that lines keep their numbers. Comments are a fifth of what a browser would have to load. */
function withoutComments(text: string): string {
  return text.replaceAll(COMMENT_OR_TEMPLATE, (found) => {
    return found.startsWith('`') ? found : found.replaceAll(/[^\n]/g, '');
  });
}

function readSource(path: string): string {
  return readFileSync(new URL(path, PROJECT), 'utf8');
}

if (import.meta.main) process.stdout.write(JSON.stringify(makePage()));
