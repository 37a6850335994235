// Owns: light, dark, or as the system. The choice is the only thing that outlives the tab, and only if there is one.

import { keep, kept } from './storage.ts';

const NAME = 'theme';

function choose(theme: string): void {
  document.documentElement.style.colorScheme = theme; // '' is that of the style sheet
  for (const button of document.querySelectorAll<HTMLElement>('#themes button'))
    button.ariaPressed = String(button.dataset.theme === theme);
}

/** Applies the choice of an earlier visit, and follows the buttons of the menu. */
export function followThemeButtons(): void {
  choose(kept('localStorage', NAME));
  for (const button of document.querySelectorAll<HTMLElement>('#themes button')) {
    button.addEventListener('click', () => {
      const { theme = '' } = button.dataset;
      keep('localStorage', NAME, theme);
      choose(theme);
    });
  }
}
