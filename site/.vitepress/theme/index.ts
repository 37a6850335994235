// Owns: what a reader sees around the documents: VitePress's own theme in the colours and fonts of the project's pages.

import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { h } from 'vue';
import '../../../page/colours.css';
import './manual.css';

/** The link to the page /docs of the same port, which is not part of the site. */
function ApiLink() {
  return h('a', { href: '/docs', target: '_self', class: 'api-link' }, 'API');
}

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('ApiLink', ApiLink);
  },
} satisfies Theme;
