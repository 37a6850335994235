// Owns: the one pair that logs in (rules 14 and 15). Knows no HTTP.

import { hash, timingSafeEqual } from 'node:crypto';

/** Tells whether a username and a password are the configured ones; absent fields just differ. */
export type CheckCredentials = (username: string | undefined, password: string | undefined) => boolean;

/**
 * Makes the check. Both fields are always compared, over digests of one length, so the time it takes
 * tells nothing about which of them differs or where.
 */
export function credentialCheck(username: string, password: string): CheckCredentials {
  const expectedUsername = digest(username);
  const expectedPassword = digest(password);
  return (givenUsername, givenPassword) => {
    const usernameEqual = timingSafeEqual(digest(givenUsername ?? ''), expectedUsername);
    const passwordEqual = timingSafeEqual(digest(givenPassword ?? ''), expectedPassword);
    return usernameEqual && passwordEqual;
  };
}

/** Over UTF-16, since in UTF-8 different ill-formed texts would become the same bytes. */
function digest(text: string): Buffer {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'buffer');
}
