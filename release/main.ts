// Owns: `npm run release -- VERSION`: everything that is published of a version, in dist/release, and the tag.
// Does not: release a tree with changes, since the tag must be the commit that was built; any version but that of
// package.json and of the newest part of CHANGELOG.md.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';
import { version } from '../src/version.ts';
import { buildExecutable, EXECUTABLE, ROOT } from './binary.ts';
import { buildPackage } from './debian.ts';
import { billOfMaterials } from './sbom.ts';

const OUTPUT = join(ROOT, 'dist/release');

/** What the Dockerfile copies, and what it needs. */
const IMAGE_CONTEXT = [
  ...['Dockerfile', '.dockerignore', 'LICENSE', 'package.json', 'package-lock.json'],
  ...[
    'src',
    'conformance',
    'page',
    'client/src',
    'client/README.md',
    'deploy/book-catalogue.1',
    'deploy/cluster/README.md',
    'docs',
    'site',
    'README.md',
    'CHANGELOG.md',
  ],
];

const HELP = `Usage: npm run release -- VERSION

Makes the files of a release in dist/release, on Debian: the executable for this platform, a Debian package, the client,
what the image is built of, licences, a bill of materials, this version's part of CHANGELOG.md, and the SHA-256 of each.
Then it tags the commit as vVERSION. VERSION must be that of package.json and of the newest part of CHANGELOG.md, with a
date; all changes must be committed.
`;

/** The release cannot be made; the message says why. */
class Refusal extends Error {}

async function release(wanted: string | undefined): Promise<void> {
  if (wanted === undefined) throw new Refusal('Usage: npm run release -- VERSION');
  if (wanted !== version) throw new Refusal(`package.json has version ${version}, not ${wanted}.`);
  const changes = newestChanges();
  if (git('status', '--porcelain') !== '') throw new Refusal('The tree has changes: commit them first.');
  const tag = `v${version}`;
  const commit = git('rev-parse', 'HEAD');
  const isTagged = git('tag', '--list', tag) !== '';
  if (isTagged && git('rev-parse', `${tag}^{commit}`) !== commit)
    throw new Refusal(`The tag ${tag} is another commit: choose another version.`);
  const date = Number(git('log', '-1', '--format=%ct')); // seconds since 1970

  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const put = (name: string, content: string | Uint8Array) => writeFileSync(join(OUTPUT, name), content);

  const licences = await buildExecutable();
  put('LICENSES.txt', licences);
  const compression = { [constants.ZSTD_c_compressionLevel]: 9, [constants.ZSTD_c_checksumFlag]: 1 };
  put(
    `book-catalogue-${version}-${process.platform}-${process.arch}.zst`,
    zstdCompressSync(readFileSync(EXECUTABLE), { params: compression }),
  );
  if (process.platform === 'linux') buildPackage(OUTPUT, version, licences, date);
  execFileSync('npm', ['pack', './client', '--silent', '--pack-destination', OUTPUT], { cwd: ROOT });
  git(
    ...['archive', '--format=tar.gz', `--prefix=book-catalogue-${version}/`],
    ...[`--output=${join(OUTPUT, `book-catalogue-${version}-image.tar.gz`)}`, 'HEAD', ...IMAGE_CONTEXT],
  );
  put('sbom.cdx.json', billOfMaterials(date));
  put('CHANGES.md', changes);
  const sums = readdirSync(OUTPUT)
    .sort()
    .map((name) => `${sha256(readFileSync(join(OUTPUT, name)))}  ${name}\n`);
  put('SHA256SUMS', sums.join(''));

  if (!isTagged) git('tag', '--annotate', '--message', `Version ${version}`, tag);
  process.stdout.write(`${sums.join('')}\nThe files are in ${OUTPUT}. Next: git push origin ${tag}\n`);
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

/** The newest part of the changelog, which must be that of this version. */
function newestChanges(): string {
  const parts = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(/^(?=## )/m);
  const newest = parts.slice(1).find((text) => !text.startsWith('## Versions')) ?? '';
  const [heading = ''] = newest.split('\n');
  const [, of] = /^## (\S+) \(\d{4}-\d\d-\d\d\)$/.exec(heading) ?? [];
  if (of !== version)
    throw new Refusal(
      `The newest part of CHANGELOG.md must begin with "## ${version} (YYYY-MM-DD)", not with "${heading}".`,
    );
  return `${newest.trimEnd()}\n`;
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

const [wanted] = process.argv.slice(2);
if (wanted === '--help') process.stdout.write(HELP);
else
  await release(wanted).catch((error) => {
    if (!(error instanceof Refusal)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  });
