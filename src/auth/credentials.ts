// Owns: the one pair that logs in (rules 14 and 15). Independent of HTTP.

import { hash, timingSafeEqual } from 'node:crypto';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** Bytes of the body of a login. Everybody may send one, so each must cost next to nothing. */
export const LOGIN_LIMIT = 4096;

/** Whether a username and a password are the configured ones; an absent field is not. */
export type CheckCredentials = (username: string | undefined, password: string | undefined) => boolean;

/**
 * Makes the check. Both fields are always compared, as digests of equal length, so its duration does not show which of
 * them differs, or where.
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

/** The digest is of UTF-16, because in UTF-8 different ill-formed texts would become the same bytes. */
function digest(text: string): Buffer {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'buffer');
}
