// Owns: which documents the site has, under which headings, and in which order.

/** The headings of the side bar, and below each the documents, as paths in the project. */
export const GROUPS = {
  'First steps': ['README.md', 'docs/install.md', 'docs/configuration.md'],
  'For librarians': ['docs/page.md', 'docs/data.md', 'docs/undo.md'],
  'For programmers': [
    'docs/search.md',
    'docs/changing.md',
    'docs/changes.md',
    'client/README.md',
    'docs/contract.md',
    'docs/verify.md',
  ],
  'For operators': [
    'docs/postgresql.md',
    'deploy/cluster/README.md',
    'docs/proxy.md',
    'docs/monitoring.md',
    'docs/maintenance.md',
    'docs/engines.md',
  ],
  Background: ['docs/reliability.md', 'docs/performance.md', 'docs/architecture.md', 'CHANGELOG.md'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export const PAGES: readonly string[] = Object.values(GROUPS).flat();

/** Where a document is in the site: a README is the first page of its folder. */
export function placeOf(page: string): string {
  return page.replace(/README\.md$/, 'index.md');
}
