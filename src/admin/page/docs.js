// Owns: the login. A token in any answer on this page is used for all calls from then on, and the bar at the top shows
// in plain words whether it is valid.
// Does not: store the token: it ends with the page.

/** @typedef {(options: object) => { preauthorizeApiKey(scheme: string, token: string): void }} Library */

const { SwaggerUIBundle } = /** @type {{ SwaggerUIBundle: Library }} */ (/** @type {unknown} */ (globalThis));

const login = /** @type {HTMLFormElement} */ (document.getElementById('login'));
const notice = /** @type {HTMLElement} */ (document.getElementById('notice'));
const place = /** @type {HTMLElement} */ (document.getElementById('api'));
let isLoggedIn = false;

const dark = matchMedia('(prefers-color-scheme: dark)');
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followScheme);
followScheme();

let isDue = false;
const makeAccessibleSoon = () => {
  if (!isDue) requestAnimationFrame(makeAccessible);
  isDue = true;
};
new MutationObserver(makeAccessibleSoon).observe(place, { childList: true, subtree: true });
addEventListener('resize', makeAccessibleSoon);

/** @param {string} path */
const read = async (path) => (await fetch(path)).json();
const files = ['openapi.json', 'docs/login.json', 'docs/page.json'];
const [description, pair, { port, manual }] = await Promise.all(files.map(read));
for (const [name, value] of Object.entries(pair)) field(name).value = value;
if (manual !== undefined) addLink('Manual', manual);
if (port !== undefined) addLink('For librarians', `http://${location.hostname}:${port}/`);
const service = description.servers[0].url;
const [scheme = ''] = Object.keys(description.components.securitySchemes);
const api = SwaggerUIBundle({
  spec: description,
  dom_id: '#api',
  tryItOutEnabled: true, // a call is two clicks: open it, Execute
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  /** @param {{ url: string, status: number, text: string, headers: Record<string, string> }} answer */
  responseInterceptor(answer) {
    onAnswer(answer.url, answer.status, answer.text, answer.headers['retry-after']);
    return answer;
  },
});

login.addEventListener('submit', async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ username: field('username').value, password: field('password').value });
  try {
    const url = `${service}/token`;
    const answer = await fetch(url, { method: 'POST', body });
    onAnswer(url, answer.status, await answer.text(), answer.headers.get('retry-after'));
  } catch {
    say(`The service does not answer at ${service}.`, 'bad');
  }
});

/**
 * Adds a link before the others at the top.
 * @param {string} text
 * @param {string} href
 */
function addLink(text, href) {
  const link = document.createElement('a');
  link.href = href;
  link.textContent = text;
  document.getElementById('links')?.prepend(link);
}

/**
 * A field of the login.
 * @param {string} name
 */
function field(name) {
  return /** @type {HTMLInputElement} */ (login.elements.namedItem(name));
}

/**
 * Updates the login and the bar after an answer of the service.
 * @param {string} url
 * @param {number} status
 * @param {string} text
 * @param {string | null | undefined} retryAfter
 */
function onAnswer(url, status, text, retryAfter) {
  const isLogin = new URL(url).pathname === '/token';
  if (isLogin && status === 200) {
    const { token } = JSON.parse(text).data;
    api.preauthorizeApiKey(scheme, token);
    isLoggedIn = true;
    say(`Logged in until ${endOf(token)}. Open a call below and press Execute.`);
  } else if (isLogin && status === 401) {
    say('The username or the password is wrong.', 'bad');
  } else if (status === 429) {
    say(`Too many failed logins: try again in ${retryAfter} seconds.`, 'bad');
  } else if (status === 401 && !isLoggedIn) {
    say('This call needs a token: log in first.', 'bad');
  } else if (status === 401) {
    say(
      'The token is no longer valid: its 15 minutes are over, or the service has restarted. Log in again.',
      'bad',
    );
  } else if (isLogin) {
    say(`The login failed: ${text}`, 'bad');
  }
}

/**
 * The time of day at which a token expires.
 * @param {string} token
 */
function endOf(token) {
  const [, payload = ''] = token.split('.');
  const { exp } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
  return new Date(exp * 1000).toLocaleTimeString([], { timeStyle: 'short' });
}

/**
 * @param {string} sentence
 * @param {'bad' | ''} kind
 */
function say(sentence, kind = '') {
  notice.textContent = sentence;
  notice.className = kind;
}

/** Adds what the library leaves out for screen readers and the keyboard. */
function makeAccessible() {
  isDue = false;
  label('.body-param__text', () => 'Request body');
  label('.examples-select-element', () => 'Example');
  label('.parameters-col_description :is(input, select)', (element) => {
    return element.closest('tr')?.dataset.paramName ?? '';
  });
  label('.json-schema-2020-12-accordion', (element) => element.textContent || 'Schema');
  for (const element of select('.information-container')) {
    element.role = 'region';
    element.ariaLabel = 'About';
  }
  // As a region without a name, this table would be a table no more.
  for (const element of select('.responses-table[role]')) element.removeAttribute('role');
  // The library skips the second level.
  for (const element of select('h3, h4, h5')) element.ariaLevel = String(Number(element.tagName[1]) - 1);
  for (const element of select('pre')) {
    const scrolls = element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth;
    if (scrolls) element.tabIndex = 0;
    else element.removeAttribute('tabindex');
  }
}

/**
 * @param {string} selector
 * @param {(element: HTMLElement) => string} nameOf
 */
function label(selector, nameOf) {
  for (const element of select(selector)) element.ariaLabel = nameOf(element);
}

/**
 * @param {string} selector
 * @returns {NodeListOf<HTMLElement>} of the library.
 */
function select(selector) {
  return place.querySelectorAll(selector);
}
