// Owns: a real browser. It records the hosts that its pages sent requests to, and their errors, for a check at the end.

import { existsSync } from 'node:fs';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';

/**
 * The path of Debian's Chromium without its windows, unless the variable CHROMIUM names another. With them, the tests take half as
 * long again.
 */
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';

/**
 * @param args options of its command line, beside those that every test needs.
 * @param without options that Playwright would add.
 */
export async function startBrowser(
  args: readonly string[] = [],
  without: readonly string[] = [],
): Promise<Browser> {
  return await chromium.launch(optionsWith(args, without));
}

/** Starts a browser that keeps cookies and storage in a folder, for the next one. */
export async function startPersistentBrowser(folder: string): Promise<BrowserContext> {
  const context = await chromium.launchPersistentContext(folder, optionsWith([], []));
  context.setDefaultTimeout(0);
  return context;
}

function optionsWith(args: readonly string[], without: readonly string[]) {
  if (!existsSync(CHROMIUM)) {
    throw new Error(
      `These tests need a browser, and ${CHROMIUM} does not exist: run apt-get install chromium-headless-shell, or set CHROMIUM to the path of a Chromium or Chrome.`,
    );
  }
  return {
    executablePath: CHROMIUM,
    ignoreDefaultArgs: [...without],
    args: [
      '--no-sandbox', // root cannot use it
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  };
}

export interface WatchedPage {
  readonly page: Page;
  /** Every host and port that it has sent a request to. */
  readonly asked: Set<string>;
  /** Errors and warnings of its console, including violations of its policy, and uncaught exceptions. */
  readonly complaints: string[];
}

/** Opens a URL in a browser without cookies or storage of earlier pages. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ locale: 'en-GB', ...options });
  context.setDefaultTimeout(0); // the runner has the only time limit
  const page = await context.newPage();
  const asked = new Set<string>();
  const complaints: string[] = [];
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== 'data:') asked.add(host);
  });
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(url);
  return { page, asked, complaints };
}
