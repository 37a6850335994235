// Owns: the texts of the login and of the requests to the catalogue: why it cannot be reached, and why it refuses something.

import { counted } from './english.ts';

const TOO_MANY_CORRECTIONS =
  'These corrections are too long for one import. Save the refused rows, correct them there, and import that file.';

const ALTERED =
  'A proxy in front of the catalogue changes requests or answers: the headers Session-Key, Link or ETag, or an answer. Tell the person who runs the catalogue.';

export const CATALOGUE = {
  /**
   * Why it cannot be reached. Most reasons are a proxy: one with its own passwords (`locked`), with a login page (`signed out`; also
   * that of a hotel's network), that forbids something, or that changes requests or answers.
   */
  troubles: {
    here: '',
    busy: 'The catalogue is busy or not ready yet.',
    away: 'The catalogue does not answer.',
    locked:
      'A proxy in front of the catalogue asks for its own password. Open this address in another tab, enter it there, and come back.',
    'signed out':
      'A login page in front of the catalogue answers in its place. Open this address in another tab, log in there, and come back.',
    forbidden:
      'A proxy in front of the catalogue forbids a request of this page. Tell the person who runs the catalogue.',
    altered: ALTERED,
  },
  again: (trouble: string) => `${trouble} Try again in a moment.`,
  keptChanges: (trouble: string) => `${trouble} Your changes are kept, and this page tries again.`,
  continues: (trouble: string) => `${trouble} The page continues as soon as it can.`,
  refused: (message: string) => `The catalogue refuses this: ${message}.`,
  loading: 'Loading …',
  oldPage: 'This page is older than the catalogue. Reload it.',

  // The login
  noCookie:
    'The browser did not send the cookie of this login back. Allow cookies for this address, or ask the person who runs the catalogue whether a proxy removes them.',
  wrong: 'The name or the password is wrong.',
  tooManyWrong: (seconds: number) =>
    `There were too many wrong passwords. Try again in ${counted(seconds, 'second')}.`,
  changedHost: 'The proxy in front of the catalogue changes the header Host, so no one can log in here.',

  // The end of a session
  ended: 'Your login has ended. Log in again: nothing is lost.',
  loggedOut: 'You have logged out.',
  unused:
    'You were logged out after 30 minutes without activity. Log in again to continue: your changes are kept.',
  longEnded: 'You were logged out after 12 hours. Log in again to continue: your changes are kept.',

  // Imports
  noRoom: 'The catalogue could not store all of it: it is away, or has no room.',
  forgottenImport: 'This import is no longer in the catalogue. Choose the file again.',
  goneFile: 'The file was moved, renamed or deleted after it was chosen. Choose it again.',
  changedFile: 'The file was saved again after it was chosen, or it cannot be read. Choose it again.',
  /** By the status of the answer. */
  refusedImports: {
    413: 'The file is too large for the catalogue, or for a proxy in front of it. Split it, or ask the person who runs the catalogue to import it.',
    414: TOO_MANY_CORRECTIONS,
    431: TOO_MANY_CORRECTIONS,
  },
};
