// Owns: which texts are the same to the eye: they differ only in blanks, in invisible signs, or in how their letters are
// composed; and a digest of a text.

/** A text without any of that: most texts are such ones, and the rest takes ten times as long. */
const PLAIN = /^[!-~\u00a1-\u00ac\u00ae-\u02ff]+(?: [!-~\u00a1-\u00ac\u00ae-\u02ff]+)*$/;

/** All but the two that join letters or keep them apart, which change the letters. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cf}\p{DI}]/gu;

/** Texts are the same to the eye if this is equal: composed letters (NFC), and one space for each run of blanks. */
export function toTheEye(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replaceAll(INVISIBLE, '').normalize('NFC').replaceAll(/\s+/g, ' ').trim();
}

/** 32 bits of a text (FNV-1a, of UTF-16 code units). */
export function digestOf(text: string): number {
  let digest = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) digest = Math.imul(digest ^ text.charCodeAt(at), 0x01000193);
  return digest;
}
