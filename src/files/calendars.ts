// Owns: which texts name a year of a calendar other than the Gregorian one.
// Does not: convert such a year: the new years of two calendars differ, so that one year is parts of two.

/**
 * A calendar, and how its years are marked, in lower case. A number without a mark is never here: 2560 may be a year
 * of any calendar.
 */
const CALENDARS: readonly (readonly [name: string, marks: RegExp])[] = [
  [
    'Japanese',
    /明治|大正|昭和|平成|令和|慶[応應]|皇紀|[㍻-㍾㋿]|meiji|tais[hy]?[oō]u?|s[hy]{1,2}[oō]u?wa|heisei|reiwa|^[[(]?[明大昭平令]\s?\d/u,
  ],
  ['Japanese', /^[[(]?[mtshr]\.?\s?(?:元|\d{1,2})(?:[年./-].*)?[\])]?$/u],
  ['Minguo', /民[国國]|^[[(]?民\s?\d|\b(?:roc|minguo)\b/u],
  [
    'East Asian era',
    /^[[(]?(?!公元|西元|西[暦历曆]|[紀纪]元)\p{sc=Han}{2,4}\s?(?:\d{1,2}|[元一二三四五六七八九十]{1,3})年/u,
  ],
  [
    'Buddhist',
    /พ\.?\s?ศ|พุทธศักราช|ພ\.?\s?ສ|ព\.?\s?ស|[仏佛][暦历曆]|\bb\.?e\.?\s?2\d{3}|\b2\d{3}\s?b\.?e\b|buddhist/u,
  ],
  ['Thai', /[รจ]\.?\s?ศ/u],
  [
    'Solar Hijri',
    /شمس[یي]|خورشید|(?<!\p{L})(?:هـ?\u200d?)?ش(?!\p{L})|\b(?:a\.?p|s\.?h)\.?\s?1[2-4]\d\d|\b1[2-4]\d\d\s?(?:a\.?p|s\.?h)\b/u,
  ],
  [
    'Hijri',
    /هـ|هجر|(?<!\p{L})(?:[هھہ]|ق(?!\.?\s?م))(?!\p{L})|\ba\.?\s?h\.?\s?\d|\d\s?(?:a\.?\s?)?h\b|hi[jc]ri/u,
  ],
  ['Hebrew', /[א-ת]["״”'’׳]|^\D*[א-ת]\D*$|\ba\.?m\.?\s?5\d{3}|\b5\d{3}\s?a\.?m\b|anno mundi/u],
  ['Saka', /(?<!\p{L})[sś]h?aka(?!\p{L})|शक|শক/u],
  [
    'Vikram Samvat',
    /\b[vb]ikram|samvat|\b[vb]\.?s\.?\s?[12]\d{3}|\b[12]\d{3}\s?[vb]\.?s\b|विक्रम|वि\.?\s?सं|संवत/u,
  ],
  ['Bengali', /বঙ্গাব্দ/u],
  ['Ethiopian', /^(?!.*እ\.?\s?ኤ).*[\u1200-\u137f]|ethiop/u],
  ['Dangun', /단기|檀[紀君]/u],
  ['Juche', /주체|juche/u],
  [
    'French Republican',
    /^[[(]?(?:l['’])?an\s(?:[ivx]+|\d{1,2})\b|vend[ée]miaire|brumaire|frimaire|niv[ôo]se|pluvi[ôo]se|vent[ôo]se|germinal|flor[ée]al|prairial|messidor|thermidor|fructidor/u,
  ],
];

/** @returns the name of the calendar; undefined if the text, in lower case, names no other one. */
export function otherCalendar(text: string): string | undefined {
  return CALENDARS.find(([, marks]) => marks.test(text))?.[0];
}
