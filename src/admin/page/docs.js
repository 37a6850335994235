// Owns: the login. A token in any answer on this page is used for all calls from then on, and the bar at the top shows
// in plain words whether it is valid.
// Refuses: to store the token: it ends with the page.

// @ts-nocheck: the project's compiler has no types for a browser, nor for the library.

const login = document.getElementById('login');
const notice = document.getElementById('notice');
let isLoggedIn = false;

const dark = matchMedia('(prefers-color-scheme: dark)');
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followScheme);
followScheme();

// The library gives these fields no label, and a screen reader has nothing else to read out.
new MutationObserver(() => {
  for (const field of document.querySelectorAll('.body-param__text')) field.ariaLabel = 'Request body';
  for (const field of document.querySelectorAll('.examples-select-element')) field.ariaLabel = 'Example';
}).observe(document.getElementById('api'), { childList: true, subtree: true });

const read = async (path) => (await fetch(path)).json();
const [description, pair] = await Promise.all([read('openapi.json'), read('docs/login.json')]);
for (const [name, value] of Object.entries(pair)) login.elements[name].value = value;
const service = description.servers[0].url;
const [scheme] = Object.keys(description.components.securitySchemes);
const api = SwaggerUIBundle({
  spec: description,
  dom_id: '#api',
  tryItOutEnabled: true, // a call is two clicks: open it, Execute
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  responseInterceptor(answer) {
    onAnswer(answer.url, answer.status, answer.text, answer.headers['retry-after']);
    return answer;
  },
});

login.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { username, password } = Object.fromEntries(new FormData(login));
  try {
    const url = `${service}/token`;
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ username, password }) });
    onAnswer(url, answer.status, await answer.text(), answer.headers.get('retry-after'));
  } catch {
    say(`The service does not answer at ${service}.`, 'bad');
  }
});

/** Updates the login and the bar after an answer of the service. */
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

/** The time of day at which a token expires. */
function endOf(token) {
  const { exp } = JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')));
  return new Date(exp * 1000).toLocaleTimeString([], { timeStyle: 'short' });
}

function say(sentence, kind = '') {
  notice.textContent = sentence;
  notice.className = kind;
}
