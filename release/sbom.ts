// Owns: the bill of materials: the libraries that the service needs, those in the site of the documents if it has been made,
// and Node.js. `npm run sbom` prints it.
// Does not: list packages that only development needs, or esbuild, which builds the page.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { librariesOfSite, ROOT } from './binary.ts';

/** A component of a bill of materials. */
interface Part {
  readonly 'bom-ref': string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

/**
 * The bill of materials as JSON (CycloneDX). npm would give it a random number, the time of day, and the name of this folder.
 * @param date of it, in seconds since 1970.
 */
export function billOfMaterials(date: number): string {
  const bill = billOfNpm(ROOT);
  // With --omit dev, npm would also leave out libraries that a development library depends on, such as pg.
  const isForDevelopment = ({ properties = [] }: Part) =>
    properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true');
  const isLeft = (part: Part) => isForDevelopment(part) || /^@?esbuild\b/.test(part['bom-ref']);
  const left = new Set(bill.components.filter(isLeft).map((part: Part) => part['bom-ref']));
  bill.components = bill.components.filter((part: Part) => !left.has(part['bom-ref']));
  bill.dependencies = bill.dependencies
    .filter(({ ref }: { ref: string }) => !left.has(ref))
    .map(({ ref, dependsOn }: { ref: string; dependsOn: string[] }) => {
      return { ref, dependsOn: dependsOn.filter((on) => !left.has(on)) };
    });
  bill.components.push(...componentsOfSite());
  const { node } = process.versions;
  bill.components.push({
    ...{ 'bom-ref': `node@${node}`, type: 'platform', name: 'node', version: node },
    ...{ purl: `pkg:generic/node@${node}`, licenses: [{ license: { id: 'MIT' } }] },
  });
  bill.metadata.component.name = 'book-catalogue';
  bill.metadata.timestamp = new Date(date * 1000).toISOString();
  const content = JSON.stringify({ ...bill, serialNumber: undefined });
  const digest = createHash('sha256').update(content).digest('hex');
  const groups = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(digest) ?? [];
  bill.serialNumber = `urn:uuid:${groups[1]}-${groups[2]}-8${groups[3]}-8${groups[4]}-${groups[5]}`; // RFC 9562, version 8
  return `${JSON.stringify(bill, null, 2)}\n`;
}

/** npm's bill of materials of a folder. */
function billOfNpm(folder: string) {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  return JSON.parse(execFileSync('npm', args, { cwd: folder, encoding: 'utf8' }));
}

/** The libraries whose code is in the site. */
function componentsOfSite(): readonly Part[] {
  const folders = librariesOfSite();
  if (folders.length === 0) return [];
  const refs = new Set(
    folders.map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
      return `${name}@${version}`;
    }),
  );
  return billOfNpm(join(ROOT, 'site')).components.filter((part: Part) => refs.has(part['bom-ref']));
}

if (import.meta.main) process.stdout.write(billOfMaterials(Math.floor(Date.now() / 1000)));
