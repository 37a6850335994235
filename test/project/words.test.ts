// The project's prose reads as an English-speaking engineer or librarian would write it: documents, comments, and every
// string that a person sees. A table lists phrases that are wrong everywhere, with the words to use instead.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

/** Written by a program: mostly captions of tables. */
const GENERATED: readonly string[] = ['bench/figures.md'];

/** Only the second cell of each row is prose. */
const MUTANTS = 'test/mutation/mutants.tsv';

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

const read = (path: string) => readFileSync(pathTo(path), 'utf8');
const OPTIONS = { cwd: pathTo(''), exclude: ['**/node_modules/**', 'test/project/words.test.ts'] };
const FOLDERS = '{bench,client,conformance,deploy,docs,endurance,page,release,site,src,test}';
const documents = globSync(['*.md', `${FOLDERS}/**/*.md`], OPTIONS);

test('no document, comment, string of a program or title of a test has a phrase that has better words', () => {
  const programs = FOLDERS.replace('deploy,docs,', '').replace('site,', '');
  const files = [...documents, MUTANTS, ...globSync(`${programs}/**/*.{css,html,js,ts}`, OPTIONS)];
  for (const file of ['CONTRIBUTING.md', 'client/README.md', 'src/config.ts', 'page/index.html'])
    assert.ok(files.includes(file));
  const found = files.flatMap((file) => {
    const text = /\.(?:md|html|tsv)$/.test(file) ? proseOf(file) : proseIn(read(file));
    return PHRASES.flatMap(({ pattern, instead }) =>
      [...text.matchAll(pattern)].map(({ 0: phrase, index }) => {
        return `${file}:${1 + linesIn(text.slice(0, index))} "${phrase.replaceAll('\n', ' ')}": write ${instead}`;
      }),
    );
  });
  assert.deepEqual(found, []);
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

test('the README has at most 900 words, and all of docs/ 16,500', () => {
  const words = (file: string) => (read(file).match(/\S*[\p{L}\p{N}]\S*/gu) ?? []).length;
  assert.ok(words('README.md') <= 900);
  const all = documents.reduce((sum, file) => sum + (file.startsWith('docs/') ? words(file) : 0), 0);
  assert.ok(all <= 16_500, `${all} words`);
});

/** The comments of a program, and its strings that are more than a word, each on its line. */
function proseIn(code: string): string {
  let prose = '';
  for (const { 0: token, index } of code.matchAll(TOKENS)) {
    const isComment = /^\s*\/[*/]/.test(token);
    if (!isComment && !/^['"`].* /s.test(token)) continue;
    const text = token
      .replaceAll(/\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}/g, (inserted) => inserted.replaceAll(/[^\n]/g, '_'))
      .replaceAll(/\n[ \t]*(?:\/\/|\*(?!\/))?[ \t]*/g, '\n');
    prose += `${'\n'.repeat(linesIn(code.slice(0, index)) - linesIn(prose))}${text};`;
  }
  return prose;
}

/** A document without its code, and with as many lines; of the changelog only the newest release. */
function proseOf(file: string): string {
  if (file === MUTANTS) return read(file).replaceAll(/^.*?\t(.*?)\t.*/gm, '$1;');
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
