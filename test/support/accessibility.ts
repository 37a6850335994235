// Owns: what axe-core finds wrong with a page, as lines for people. The rules are those of WCAG 2.2, levels A and AA, and
// axe's best practices.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AxeResults, ElementContext } from 'axe-core';
import type { Page } from 'playwright-core';

/** Tags of axe. */
const ALL = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** The rules of axe that depend on the colour scheme. */
export const COLOURS = ['color-contrast', 'link-in-text-block'];

/** Ends when they have ended, or were cancelled. */
const TRANSITIONS =
  'Promise.allSettled(document.getAnimations().filter((one) => one instanceof CSSTransition).map((one) => one.finished))';

/**
 * Checks a page once its transitions have ended: axe reads colours in between as they are.
 * @param without selectors of elements that are not checked.
 * @param rules tags or names of rules.
 * @returns a line for each element that breaks a rule, empty if all hold.
 * @throws Error if axe has checked nothing.
 */
export async function violations(
  page: Page,
  without: readonly string[] = [],
  rules: readonly string[] = ALL,
): Promise<string[]> {
  await page.evaluate(TRANSITIONS);
  await page.evaluate(AXE); // unlike a script element, a policy of the page does not stop it
  const context: ElementContext = { include: ['html'], exclude: without.map((selector) => [selector]) };
  const options = { runOnly: rules, resultTypes: ['violations'] };
  const found = (await page.evaluate(
    `axe.run(${JSON.stringify(context)}, ${JSON.stringify(options)})`,
  )) as AxeResults;
  if (found.passes.length === 0) throw new Error('axe has checked nothing');
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, any, all, none }) => {
      const [reason] = [...any, ...all, ...none]; // usually one; otherwise the others say as much
      return `${id}: ${help}: ${target.join(' ')}: ${reason?.message}`;
    }),
  );
}
