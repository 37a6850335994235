// Owns: starting the worker that reads files. The page's content policy demands Trusted Types: a browser starts a worker
// only from a URL that the policy `import-worker` has approved.
// Does not: start any other URL, so that no text from elsewhere becomes a program.

/** Trusted Types, as far as they are needed here; the compiler's library does not have them. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): unknown };
}

/** What worker.ts is built into, beside the program of the page (src/page/build.ts). */
const PROGRAM = new URL('./worker.js', import.meta.url).href;

const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
const policy = trustedTypes?.createPolicy('import-worker', {
  createScriptURL(url) {
    if (url !== PROGRAM) throw new TypeError(`${url} is not a program of this page.`);
    return url;
  },
});

export function startImportWorker(): Worker {
  const url = policy?.createScriptURL(PROGRAM) ?? PROGRAM;
  return new Worker(url as string, { type: 'module' });
}
