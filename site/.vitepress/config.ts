// Owns: how VitePress makes the site of the documents: which files it reads, and what becomes of their links.
// Does not: put a program or a style into a page, since the policy of src/admin/manual.ts allows neither there.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { transformerStyleToClass } from '@shikijs/transformers';
import { defineConfig, type MarkdownRenderer } from 'vitepress';
import { version } from '../../src/version.ts';
import { GROUPS, PAGES, placeOf } from '../pages.ts';

const PROJECT = join(import.meta.dirname, '../..');
const MODULES = 'site/node_modules';
const BASE = '/manual/';

/** Addresses of the listener that serves the site, for files of the project that it has beside the site. */
const SERVED_BESIDE: Readonly<Record<string, string>> = { 'docs/openapi/openapi.json': '/openapi.json' };

type Token = ReturnType<MarkdownRenderer['parse']>[number];

/** The sign of both pages of the service. */
const SIGN =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect x='3' y='4' width='5' " +
  "height='17' rx='1' fill='%23b4552d'/%3E%3Crect x='9' y='2' width='5' height='19' rx='1' fill='%23216e5c'/%3E%3Crect " +
  "x='15.4' y='5' width='5' height='16' rx='1' fill='%23d9a13b' transform='rotate(-9 18 21)'/%3E%3C/svg%3E";

/** The colours of code. */
const codeStyles = transformerStyleToClass();

/** The texts of programs that VitePress writes into pages, by the names of the files that have them instead. */
const programs = new Map<string, string>();

/** The folders of the libraries that are part of the site, as paths in the project. */
const libraries = new Set<string>();

export default defineConfig({
  lang: 'en-GB',
  title: 'Book Catalogue',
  description: `The manual of book-catalogue ${version}`,
  base: BASE,
  srcDir: '..',
  srcExclude: ['!(client|deploy|docs)/**/*.md', '!(README|CHANGELOG).md'],
  rewrites: Object.fromEntries(PAGES.map((page) => [page, placeOf(page)])),
  outDir: `dist/${version}`, // so that no version serves the site of another one
  cacheDir: 'node_modules/.cache',
  metaChunk: true,
  appearance: { disableTransition: false }, // which takes a style element
  contentProps: { class: 'document' },
  head: [
    ['link', { rel: 'icon', href: SIGN }],
    ['link', { rel: 'stylesheet', href: `${BASE}code.css` }],
  ],
  markdown: {
    attrs: { disable: true }, // braces in the documents are text
    anchor: { slugify: anchorOf },
    codeTransformers: [
      codeStyles,
      {
        // By default a line that takes half a second loses its colours: a busy machine would make another site.
        preprocess(_code, options) {
          options.tokenizeTimeLimit = 0;
        },
      },
    ],
    config: changeLinks,
    languageAlias: { caddy: 'nginx' }, // which it does not know, and which looks alike
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [{ text: version, link: '/CHANGELOG' }, { component: 'ApiLink' }],
    sidebar: Object.entries(GROUPS).map(([text, pages]) => ({
      text,
      items: pages.map((page) => ({
        text: titleOf(page),
        link: `/${placeOf(page).replace(/index\.md$/, '')}`,
      })),
    })),
  },
  vite: {
    resolve: {
      // The documents are outside of the folder that has these libraries.
      alias: { vue: join(PROJECT, MODULES, 'vue') },
    },
    plugins: [
      {
        name: 'libraries',
        apply: (_config, { isSsrBuild }) => isSsrBuild !== true,
        generateBundle(_options, files) {
          for (const file of Object.values(files)) {
            const modules = file.type === 'chunk' ? Object.entries(file.modules) : [];
            for (const [id, { renderedLength }] of modules) {
              const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(relative(PROJECT, id)) ?? [];
              if (folder !== undefined && renderedLength > 0) libraries.add(folder);
            }
          }
        },
      },
    ],
  },
  transformHtml: (html) =>
    html
      .replaceAll(
        /<script(?: id="[\w-]+")?>([^<]+)<\/script>/g,
        (_, text) => `<script src="${BASE}${fileOf(text)}"></script>`,
      )
      .replaceAll(' style="--vp-vh:0px;"', ''), // the theme's program sets it
  buildEnd({ outDir }) {
    const put = (name: string, text: string) => {
      mkdirSync(dirname(join(outDir, name)), { recursive: true });
      writeFileSync(join(outDir, name), text);
    };
    put('code.css', codeStyles.getCSS());
    for (const [name, text] of programs) put(name, text);
    put('../libraries.json', JSON.stringify([...libraries].sort()));
  },
});

/** GitHub's anchor of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-');
}

/** The links of a document, changed so that they lead to other pages. One to a file that the site lacks becomes text. */
function changeLinks(md: MarkdownRenderer): void {
  md.core.ruler.push('links', ({ tokens, env }) => {
    const folder = dirname(env.realPath ?? env.path);
    for (const token of tokens) {
      let isText = false;
      const children = token.children?.filter((child) => {
        if (child.type === 'link_open') isText = !changeLink(child, folder);
        return !(isText && /^link_(open|close)$/.test(child.type));
      });
      token.children = children ?? null;
    }
  });
}

/** @returns whether the link leads anywhere in the site, beside it or outside of it. */
function changeLink(link: Token, folder: string): boolean {
  const href = link.attrGet('href') ?? '';
  if (/^(#|[a-z]+:)/.test(href)) return true;
  const [, path = '', anchor = ''] = /^([^#]*)(.*)$/.exec(href) ?? [];
  const file = relative(PROJECT, join(folder, path));
  const beside = SERVED_BESIDE[file];
  if (beside !== undefined) {
    link.attrSet('href', beside);
    link.attrSet('target', '_self'); // not an address in the site
  } else if (PAGES.includes(file)) {
    link.attrSet('href', `/${placeOf(file)}${anchor}`);
  } else {
    return false;
  }
  return true;
}

/** The file that has a program instead of a page. */
function fileOf(text: string): string {
  const name = `assets/${createHash('sha256').update(text).digest('hex').slice(0, 8)}.js`;
  programs.set(name, text);
  return name;
}

function titleOf(page: string): string {
  const [, title = page] = /^# (.+)$/m.exec(readFileSync(join(PROJECT, page), 'utf8')) ?? [];
  return title;
}
