// Owns: texts of the catalogue or of a file, by themselves and in the sentences of the page.

/** The parts of a sentence: words, and elements between them. */
export type Sentence = readonly (string | Node)[];

/**
 * Attributes of an element whose whole text is from the catalogue or from a file: a browser does not translate it, and writes
 * it from the side on which its language begins.
 */
export const AS_IT_IS = { translate: 'no', dir: 'auto' } as const;

/** Such a text as a part of a sentence. */
export function asItIs(text: string): HTMLElement {
  const element = document.createElement('bdi');
  for (const [name, value] of Object.entries(AS_IT_IS)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

/** A sentence with such texts in it. */
export function sentence(parts: TemplateStringsArray, ...texts: readonly string[]): Sentence {
  return parts.flatMap((part, at) => (at === 0 ? part : [asItIs(texts[at - 1] as string), part]));
}
