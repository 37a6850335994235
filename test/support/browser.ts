// Owns: a real browser. What its pages asked for and complained of is kept, to be looked at in the end.

import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** Where Debian puts it; CHROMIUM names another. */
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

export async function startBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) {
    throw new Error(
      `These tests need a browser, and ${CHROMIUM} is not there: apt-get install chromium, or name a Chromium or Chrome by the variable CHROMIUM.`,
    );
  }
  return await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox', // as root there is none
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** Every host and port that it has sent a request to. */
  readonly asked: Set<string>;
  /** Errors and warnings of its console, violations of its policy and uncaught exceptions included. */
  readonly complaints: string[];
}

/** Opens an address in a browser that knows nothing of what was before. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ locale: 'en-GB', ...options });
  context.setDefaultTimeout(0); // the runner sets the one limit there is
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
