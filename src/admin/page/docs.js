// Owns: the page of the API: Swagger UI with the description of this service, and with the token of POST /token.
// Does not: store the token, which ends with the page; mend the library.

/** @typedef {(options: object) => { preauthorizeApiKey(scheme: string, token: string): void }} Library */

const { SwaggerUIBundle } = /** @type {{ SwaggerUIBundle: Library }} */ (/** @type {unknown} */ (globalThis));

/** @param {string} path */
const read = async (path) => (await fetch(path)).json();
const [spec, { port, manual }] = await Promise.all(['openapi.json', 'docs/page.json'].map(read));
if (manual !== undefined)
  spec.externalDocs = { description: 'Manual', url: new URL(manual, location.href).href };
if (port !== undefined)
  spec.info.description += `\n\n[The page for librarians](http://${location.hostname}:${port}/)`;
document.documentElement.classList.toggle('dark-mode', matchMedia('(prefers-color-scheme: dark)').matches);

const [scheme = ''] = Object.keys(spec.components.securitySchemes);
const ui = SwaggerUIBundle({
  spec,
  dom_id: '#api',
  tryItOutEnabled: true, // a call is two clicks: open it, Execute
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  /** @param {{ url: string, ok: boolean, text: string }} answer */
  responseInterceptor(answer) {
    const isToken = answer.ok && new URL(answer.url).pathname === '/token';
    if (isToken) ui.preauthorizeApiKey(scheme, JSON.parse(answer.text).data.token);
    return answer;
  },
});
