// Owns: the Debian package: what it installs, from the executable, the unit of deploy/ and the scripts of debian/.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { EXECUTABLE, ROOT } from './binary.ts';

/** Debian's names of architectures, by those of Node.js. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

const MAINTAINER = 'The maintainers of book-catalogue <maintainers@book-catalogue.invalid>';

/** Where the executable is. The scripts of deploy/ are in the folder `deploy` there, beside it as in a clone. */
const PROGRAMS = 'usr/libexec/book-catalogue';

/** Where shells look for the completions of a program, by the names in deploy/completion. */
const COMPLETIONS = {
  'book-catalogue.bash': 'usr/share/bash-completion/completions/book-catalogue',
  '_book-catalogue': 'usr/share/zsh/vendor-completions/_book-catalogue',
  'book-catalogue.fish': 'usr/share/fish/vendor_completions.d/book-catalogue.fish',
};

/** What differs in the unit: no Node.js beside it, nothing to compile, a separate user, the store's URL in a file. */
const UNIT_CHANGES: readonly (readonly [from: RegExp, to: string])[] = [
  [
    /^# The service under systemd 250 or newer, installed in [^;]+; docs\/install\.md has the steps\.$/m,
    '# The service under systemd.',
  ],
  [/^Description=.*$/m, '$&\nDocumentation=man:book-catalogue(1)'],
  [/^ExecStart=.*$/m, `ExecStart=/${PROGRAMS}/book-catalogue serve`],
  [
    /^# Node\.js keeps its compile cache[^\n]*\nCacheDirectory=[^\n]*\nEnvironment=NODE_COMPILE_CACHE=[^\n]*\nExecStartPre=[^\n]*\n\n/m,
    '',
  ],
  [/^# On PostgreSQL, enable these two as well:\n#(Load[^\n]*\n)#(Env[^\n]*)$/m, '$1$2'],
  [/^DynamicUser=yes$/m, 'User=book-catalogue\nGroup=book-catalogue'],
];

/**
 * Makes the package of the executable that has been built.
 * @param folder gets `book-catalogue_<version>_<architecture>.deb`.
 * @param licences the text about the licences of what the executable contains.
 * @param date seconds since 1970: no file in the package is newer.
 * @throws Error if `dpkg-deb` is missing, or Debian has no name for this architecture.
 */
export function buildPackage(folder: string, version: string, licences: string, date: number): void {
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined)
    throw new Error(`Debian's name of the architecture ${process.arch} is unknown.`);
  const stage = mkdtempSync(join(ROOT, 'dist/package-'));
  try {
    const put = (path: string, content: string | Uint8Array, mode = 0o644) => {
      mkdirSync(join(stage, dirname(path)), { recursive: true });
      writeFileSync(join(stage, path), content);
      chmodSync(join(stage, path), mode);
    };
    const source = (path: string) => readFileSync(join(ROOT, path), 'utf8');

    put(`${PROGRAMS}/book-catalogue`, '', 0o755);
    copyFileSync(EXECUTABLE, join(stage, PROGRAMS, 'book-catalogue'));
    put(`${PROGRAMS}/deploy/backup.sh`, source('deploy/backup.sh'), 0o755);
    put('usr/bin/book-catalogue', source('release/debian/book-catalogue'), 0o755);
    const units = 'usr/lib/systemd/system';
    put(`${units}/book-catalogue.service`, unitOfPackage(source('deploy/book-catalogue.service')));
    put(`${units}/book-catalogue-backup.service`, source('release/debian/book-catalogue-backup.service'));
    put(`${units}/book-catalogue-backup.timer`, source('deploy/book-catalogue-backup.timer'));
    put('etc/book-catalogue/environment', source('release/debian/environment'));
    put('usr/share/man/man1/book-catalogue.1.gz', gzipSync(source('deploy/book-catalogue.1'), { level: 9 }));
    for (const [name, path] of Object.entries(COMPLETIONS)) put(path, source(`deploy/completion/${name}`));
    put('usr/share/doc/book-catalogue/copyright', licences);
    put('usr/share/doc/book-catalogue/NEWS.gz', gzipSync(source('CHANGELOG.md'), { level: 9 }));
    put('usr/share/doc/book-catalogue/changelog.gz', gzipSync(changelog(version, date), { level: 9 }));
    put('usr/share/lintian/overrides/book-catalogue', source('release/debian/lintian-overrides'));

    const files = globSync('**/*', { cwd: stage }).filter((path) => statSync(join(stage, path)).isFile());
    const sums = files.sort().map((path) => {
      return `${createHash('md5')
        .update(readFileSync(join(stage, path)))
        .digest('hex')}  ${path}\n`;
    });
    const kibibytes = files.reduce(
      (sum, path) => sum + Math.ceil(statSync(join(stage, path)).size / 1024),
      0,
    );
    put('DEBIAN/md5sums', sums.join(''));
    put('DEBIAN/conffiles', '/etc/book-catalogue/environment\n');
    put(
      'DEBIAN/control',
      source('release/debian/control')
        .replace('@VERSION@', version)
        .replace('@MAINTAINER@', MAINTAINER)
        .replace('@ARCHITECTURE@', architecture)
        .replace('@SIZE@', String(kibibytes)),
    );
    for (const script of ['postinst', 'prerm', 'postrm'])
      put(`DEBIAN/${script}`, source(`release/debian/${script}`), 0o755);

    for (const path of globSync('**/', { cwd: stage })) chmodSync(join(stage, path), 0o755);
    chmodSync(stage, 0o755);
    const output = join(folder, `book-catalogue_${version}_${architecture}.deb`);
    // One thread, since the bytes depend on the number of them. The default level of xz takes several times as long.
    execFileSync(
      'dpkg-deb',
      ['--root-owner-group', '--threads-max=1', '-Zxz', '-z1', '--build', stage, output],
      {
        env: { ...process.env, SOURCE_DATE_EPOCH: String(date) },
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    );
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

function unitOfPackage(unit: string): string {
  return UNIT_CHANGES.reduce((text, [from, to]) => {
    if (!from.test(text)) throw new Error(`deploy/book-catalogue.service no longer has ${from}.`);
    return text.replace(from, to);
  }, unit);
}

/** The form that Debian prescribes; the changes themselves are in NEWS.gz. */
function changelog(version: string, date: number): string {
  const time = new Date(date * 1000).toUTCString().replace('GMT', '+0000');
  return `book-catalogue (${version}) unstable; urgency=medium

  * NEWS.gz has the changes.

 -- ${MAINTAINER}  ${time}
`;
}
