// The Kubernetes manifest of deploy/: does it have the form of the API, and does it agree with the service? No cluster runs it.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { Deployment } from 'kubernetes-types/apps/v1.d.ts';
import type { Container, PodSpec, Service } from 'kubernetes-types/core/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { parseAllDocuments } from 'yaml';
import { runCommand } from '../support/command.ts';
import { folderWith } from '../support/importing.ts';
import { pathTo } from '../support/repository.ts';

/** Seconds within which the service exits (rule 27). */
const EXIT_TIME = 10;

// Kubernetes reads YAML 1.1, where a bare `off` is not a text.
const text = readFileSync(pathTo('deploy/kubernetes.yaml'), 'utf8');
const documents = parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS());
const [deployment, service, budget] = documents as [Deployment, Service, PodDisruptionBudget];
const pod = deployment.spec?.template.spec as PodSpec;
const container = pod.containers[0] as Container;

describe('deploy/kubernetes.yaml', () => {
  test('has the form of the Kubernetes API, and no field that it does not have', (context) => {
    const kinds = ['apps/v1.Deployment', 'core/v1.Service', 'policy/v1.PodDisruptionBudget'];
    const lines = kinds.map((kind, position) => {
      const [module, name] = kind.split('.');
      const type = `import('kubernetes-types/${module}.d.ts').${name}`;
      return `export const _${position}: ${type} = ${JSON.stringify(documents[position])};\n`;
    });
    const file = pathTo(`node_modules/.cache/kubernetes-${process.pid}.ts`); // where the types can be found
    writeFileSync(file, lines.join(''));
    context.after(() => rmSync(file));
    const options = '--ignoreConfig --noEmit --strict --skipLibCheck --allowImportingTsExtensions'.split(' ');
    const args = [...options, '--module', 'nodenext', file];
    const { status, stdout } = spawnSync(pathTo('node_modules/.bin/tsc'), args, { encoding: 'utf8' });
    assert.deepEqual([status, stdout], [0, '']);
  });

  test('rule 27: a pod is stopped after no requests are routed to it, and has the time to end', () => {
    const sleep = container.lifecycle?.preStop?.sleep?.seconds ?? 0;
    assert.ok(sleep > 0);
    assert.ok((pod.terminationGracePeriodSeconds ?? 0) > sleep + EXIT_TIME);
    assert.equal(deployment.spec?.strategy?.rollingUpdate?.maxUnavailable, 0);
    assert.ok(Number(budget.spec?.minAvailable) < Number(deployment.spec?.replicas));
  });

  test('rules 25 and 31: the service accepts its variables, and has the ports that are probed and routed', async () => {
    const folder = folderWith({
      auth_password: 'correct horse',
      secret_token: 'a secret for tests that is long enough',
      db_url: 'postgres://catalogue:secret@db.example.org/catalogue',
    });
    const mounted = container.volumeMounts?.[0]?.mountPath ?? '';
    const env = Object.fromEntries(
      (container.env ?? []).map(({ name, value = '' }) => [name, value.replace(mounted, folder)]),
    );
    const { code, stdout, stderr } = await runCommand(['config'], env);
    assert.deepEqual([code, stderr], [0, '']);
    const setting = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, 'm').exec(stdout)?.[1]);
    const ports = new Map((container.ports ?? []).map(({ name, containerPort }) => [name, containerPort]));
    assert.deepEqual(Object.fromEntries(ports), {
      service: setting('PORT'),
      operations: setting('ADMIN_PORT'),
      page: setting('PAGE_PORT'),
    });
    const probes = [container.livenessProbe, container.readinessProbe].map((probe) => probe?.httpGet);
    const port = 'operations';
    assert.deepEqual(probes, [
      { path: '/livez', port },
      { path: '/readyz', port },
    ]);
    const routed = service.spec?.ports?.map(({ targetPort }) => targetPort);
    assert.deepEqual(routed, ['service', 'page']);
  });

  test('rule 16: all replicas sign with one secret', () => {
    const names = (container.env ?? []).map(({ name }) => name);
    assert.ok(names.includes('SECRET_TOKEN_FILE'));
    assert.deepEqual(pod.volumes?.[0], { name: 'secrets', secret: { secretName: 'book-catalogue' } });
  });

  test('the files of imports have a folder on the disk that the image names', () => {
    const [folder] = /(?<=^ENV TMPDIR=).*/m.exec(readFileSync(pathTo('Dockerfile'), 'utf8')) ?? [];
    assert.ok(
      container.volumeMounts?.some(({ mountPath, name }) => mountPath === folder && name === 'files'),
    );
    assert.deepEqual(pod.volumes?.[1], { name: 'files', emptyDir: { sizeLimit: '1200Mi' } });
  });
});
