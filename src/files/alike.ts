// Owns: which texts are the same to the eye: they differ only in blanks, in invisible signs, or in how their letters are
// composed.

/** A text without any of that: most texts are such ones, and the rest takes ten times as long. */
const PLAIN = /^[!-~\u00a1-\u00ac\u00ae-\u02ff]+(?: [!-~\u00a1-\u00ac\u00ae-\u02ff]+)*$/;

/** All but the two that join letters or keep them apart, which change the letters. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cf}\p{DI}]/gu;

/** Texts are the same to the eye if this is equal: composed letters (NFC), and one space for each run of blanks. */
export function toTheEye(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replaceAll(INVISIBLE, '').normalize('NFC').replaceAll(/\s+/g, ' ').trim();
}
