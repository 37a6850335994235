// The project's prose reads as an English-speaking engineer or librarian would write it: documents, comments, and every
// string that a person sees. A table lists phrases that are wrong everywhere, with the words to use instead.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

/** Written by programs: mostly captions of tables and statements. */
const GENERATED: readonly string[] = ['bench/figures.md', 'src/stores/search-statements.md'];

/** What a program cannot do, since it is not a person. */
const PROGRAM = '(?:service|store|page|client|program|process|browser|server|thread|parser|index|function)';

/** A phrase, and the words to use instead. A space in a phrase stands for a line break as well. */
const WORDS = String.raw`
(?<!\x60)finder(?!\.ts) → search index
(?:is|are) answered with → gets, returns
(?:give|gives|giving|gave|given) way → is closed for, is replaced by
of (?:its|their|your|our) own → its own …, a separate …
of ours → our …
(?<!Milliseconds |MiB )by which → that, with which, or a noun such as "search index"
begun → started
anew → again, new
likewise → also, the same way
whoever|whosoever → anyone who, a client that
what (?:is|are|was|has|follows|happens|others?)(?: [a-z]+){0,5} (?:is|are) → the noun that it stands for
(?<=, )too(?! \w) → also, before the verb
(?<!No )${PROGRAM}s? (?:knows?|wants?|hears?|tells?|forgives?|forgets?|believes?|thinks?|learns?) → has, uses, reads
(?<!status |answer )(?:is|are) \x60?(?:20[0-4]|304|4[0-3]\d|50[0-5])\x60?(?! (?:of|at most)) → returns 400, gets 400
(?:go|goes|going|went|gone) on(?= |[.,;:]|$) → continues, resumes
(?:of|from) one moment → a snapshot, one point in time
in vain → without success
to no purpose → without benefit
dear(?:er|est) → expensive
reckons?|reckoned → estimates
for good → permanently, in production
takes? nothing → reads nothing`;

const PHRASES = WORDS.trim()
  .split('\n')
  .map((row) => row.split(' → ') as [string, string])
  .map(([phrase, instead]) => {
    const spaced = phrase.replaceAll(' ', '\\s');
    return { instead, pattern: new RegExp(`(?<![\\w#-])(?:${spaced})(?![\\w-])`, 'gi') };
  });

/** Colons may join the halves of at most this share of a document's prose sentences. */
const MAX_COLONS = 0.1;

/** Comments, strings and regular expressions of TypeScript, JavaScript and CSS, whichever comes first. */
const TOKENS = new RegExp(
  [
    /\/\*[\s\S]*?\*\//,
    /(?:^[ \t]*\/\/.*\n)+|\/\/.*/,
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/,
    /`(?:\\[\s\S]|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}|[^`\\])*`/,
    /(?<=[=(,:;!&|?{}[\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gm',
);

/** A piece of prose, with the line on which it starts. */
interface Passage {
  readonly line: number;
  readonly text: string;
}

const read = (path: string) => readFileSync(pathTo(path), 'utf8');
const OPTIONS = { cwd: pathTo(''), exclude: ['**/node_modules/**', 'test/project/words.test.ts'] };
const FOLDERS = '{bench,client,conformance,deploy,docs,endurance,page,release,site,src,test}';
const documents = globSync(['*.md', `${FOLDERS}/**/*.md`], OPTIONS);

test('no document has a phrase that has better words', () => {
  assert.ok(documents.includes('CONTRIBUTING.md') && documents.includes('client/README.md'));
  assertNone(documents, (_text, file) => [{ line: 1, text: proseOf(file) }]);
});

test('no comment, no string of a program and no title of a test has a phrase that has better words', () => {
  const programs = FOLDERS.replace('deploy,docs,', '').replace('site,', '');
  const files = globSync(`${programs}/**/*.{css,html,js,ts}`, OPTIONS);
  assert.ok(files.includes('src/config.ts') && files.includes('page/index.html'));
  assertNone(files, (text, file) => (file.endsWith('.html') ? [{ line: 1, text }] : passagesOf(text)));
});

test('a colon joins the halves of one sentence in ten at most', () => {
  const written = documents.filter((file) => !GENERATED.includes(file));
  const tooMany = written.flatMap((file) => {
    const sentences = sentencesOf(proseOf(file));
    const joined = sentences.filter((sentence) => /[\w`)]: \S/.test(sentence));
    const most = Math.max(1, Math.floor(sentences.length * MAX_COLONS));
    const found = `${file}: ${joined.length} of ${sentences.length} sentences have a colon, at most ${most} may:`;
    return joined.length <= most ? [] : [found, ...joined];
  });
  assert.equal(tooMany.length, 0, tooMany.join('\n'));
});

test('the README has at most 900 words, and all of docs/ 16,000', () => {
  const words = (file: string) => (read(file).match(/\S*[\p{L}\p{N}]\S*/gu) ?? []).length;
  assert.ok(words('README.md') <= 900);
  const all = documents.reduce((sum, file) => sum + (file.startsWith('docs/') ? words(file) : 0), 0);
  assert.ok(all <= 16_000, `${all} words`);
});

/** @param passagesOfText of the text of a file. */
function assertNone(files: readonly string[], passagesOfText: (text: string, file: string) => Passage[]) {
  const found = files.flatMap((file) =>
    passagesOfText(read(file), file).flatMap(({ line, text }) =>
      PHRASES.flatMap(({ pattern, instead }) =>
        [...text.matchAll(pattern)].map(({ 0: phrase, index }) => {
          const at = `${file}:${line + linesIn(text.slice(0, index))}`;
          return `${at} "${phrase.replaceAll('\n', ' ')}": write ${instead}`;
        }),
      ),
    ),
  );
  assert.deepEqual(found, []);
}

/** The comments of a program, and its strings that are more than a word. */
function passagesOf(code: string): Passage[] {
  return [...code.matchAll(TOKENS)].flatMap(({ 0: token, index }) => {
    const isComment = /^\s*\/[*/]/.test(token);
    if (!isComment && !/^['"`].* /s.test(token)) return [];
    const text = token
      .replaceAll(/\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}/g, (inserted) => inserted.replaceAll(/[^\n]/g, '_'))
      .replaceAll(/\n[ \t]*(?:\/\/|\*(?!\/))?[ \t]*/g, '\n');
    return [{ line: 1 + linesIn(code.slice(0, index)), text }];
  });
}

/** A document without its code, and with as many lines; of the changelog only the newest release. */
function proseOf(file: string): string {
  const text = read(file).replaceAll(/^```.*?^```$/gms, (code) => code.replaceAll(/[^\n]/g, ''));
  const parts = text.split(/^(?=## )/m);
  return (file === 'CHANGELOG.md' ? parts.slice(0, 3) : parts).join('');
}

/** The sentences of a document's paragraphs: not of its lists, tables and headings. */
function sentencesOf(text: string): string[] {
  const paragraphs = text.split(/\n\s*\n/).filter((paragraph) => !/^\s*(?:[-*|#<>!]|\d+\. )/.test(paragraph));
  return paragraphs
    .flatMap((paragraph) => paragraph.trim().split(/(?<=[.!?:]\)?)\s+(?=[A-Z`*[("])/))
    .filter(Boolean);
}

function linesIn(text: string): number {
  return text.split('\n').length - 1;
}
