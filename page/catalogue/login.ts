// Owns: the dialog in which a person logs in, and the reasons why that fails.
// Does not: keep the password, or close before there is a session, started here or in another tab.

import { find, refocus } from '../elements/dom.ts';
import { CATALOGUE } from '../texts/catalogue.ts';
import type { Answered } from './upload.ts';

/** Milliseconds until the dialog is shown, even if the service is silent. */
const LATEST = 10_000;

const dialog = find<HTMLDialogElement>('#login');
const form = find<HTMLFormElement>('form', dialog);
const username = find<HTMLInputElement>('#username');
const password = find<HTMLInputElement>('#password');
const complaint = find('#login-complaint');
const submit = find<HTMLButtonElement>('button', form);

let isNeeded = false;

dialog.addEventListener('close', () => {
  if (isNeeded) dialog.showModal(); // a browser without `closedby`
});
find('#login-insecure').hidden = isSecureContext;

export interface Door {
  /** Starts a session with this body. @returns undefined if there was no answer. */
  logIn(body: string): Promise<Answered | undefined>;
  /** Why there was none. */
  reason(): string;
  /** Whether there is a session, started here or in another tab. */
  isOpen(): boolean;
}

/**
 * Asks a person to log in, until there is a session.
 * @param reason why a login is needed; '' for the first one.
 * @param started resolves once there is a session.
 */
export async function askToLogIn(door: Door, reason: string, started: Promise<unknown>): Promise<void> {
  find('#login-reason').textContent = reason;
  complaint.textContent = '';
  await fillIn(); // before it is shown, so that nothing moves
  if (door.isOpen()) return;
  isNeeded = true;
  dialog.showModal();
  (username.value === '' ? username : password.value === '' ? password : submit).focus();
  while (!door.isOpen()) {
    const submitted = new Promise<boolean>((resolve) => {
      form.onsubmit = (event) => {
        event.preventDefault();
        resolve(true);
      };
    });
    if ((await Promise.race([submitted, started])) !== true) break;
    submit.ariaDisabled = 'true';
    const answer = await door.logIn(JSON.stringify({ username: username.value, password: password.value }));
    submit.ariaDisabled = null;
    if (door.isOpen()) break;
    complaint.textContent = answer === undefined ? door.reason() : explain(answer, door);
    password.select();
  }
  isNeeded = false;
  password.value = ''; // the field is in the page
  dialog.close();
  refocus(); // at once: at the event, a frame later, the person may be typing
}

function explain({ status, message, retryAfter }: Answered, door: Door): string {
  if (message === 'Invalid credentials') return CATALOGUE.wrong;
  if (status === 429) return CATALOGUE.tooManyWrong(retryAfter);
  if (status === 403) return CATALOGUE.changedHost;
  // The browser, or a proxy, has not kept the cookie of the session.
  return message === 'Session expired' ? CATALOGUE.noCookie : door.reason();
}

/** Fills in the built-in pair, if it logs in now. */
async function fillIn(): Promise<void> {
  const hint = find('#login-built-in');
  hint.hidden = true;
  try {
    const login = await (await fetch('login.json', { signal: AbortSignal.timeout(LATEST) })).json();
    if (login.username === undefined) return;
    username.value = login.username;
    password.value = login.password;
    hint.hidden = false;
  } catch {
    // The service does not answer: the login shows it.
  }
}
