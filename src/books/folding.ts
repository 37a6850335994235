// Owns: which texts are equal when books are searched and sorted (rule F8): letters, digits and signs that people type for
// one another.
// Does not: depend on a language. `ä` is `a` wherever the reader lives.
// Sources: Unicode's data (NFKD, Nd, Cf, DI) and collations (CLDR: equal at primary strength in the root, fa, ps and hi);
// Lucene's foldings (UTR 30, ASCIIFolding, Arabic, Persian, Sorani, Hindi, Ukrainian, Japanese iteration marks); ALA-LC and NACO.

export const ASCII = /^[\0-\x7f]*$/;

/** Signs within a word that stand for an apostrophe, a hamza, an ayn, a soft or hard sign, a geresh, an ʻokina. */
export const APOSTROPHES = "'`´΄᾽᾿῾´＇｀‘’‛′‵❛❜ʹʻʼʽʾʿˀˁˈˊˋˌˎˏːˑ꞉ꞌʔʕɂꜣꜥⸯꙿ՚ՙ׳ߴߵ";
/** Those that are doubled: a gershayim, a hard sign. */
export const QUOTES = '"“”„‟″‶❝❞〝〞〟＂ʺˮ״';

/** By what people type, each form that NFKD leaves as it is. */
const FORMS: Readonly<Record<string, string>> = {
  "'": APOSTROPHES.replace("'", ''),
  '"': QUOTES.replace('"', ''),
  // Latin letters whose names in Unicode are "… with …", and those of living orthographies and of romanisations
  a: 'ɑᶏⱥ',
  b: 'ƀƃɓᵬᶀꞗ',
  c: 'ƈȼɕꞓꞔ',
  d: 'ðđƌȡɖɗᵭᶁᶑꟈꝺ',
  e: 'ǝɇəɚɛɝᶒᶓᶔᶕⱸ',
  f: 'ƒᵮᶂꞙꝼ',
  g: 'ǥɠɡɣᶃᵹꞡ',
  h: 'ħɦⱨꞕ',
  i: 'ıɨɩɪᶖ',
  j: 'ȷɉɟʄʝ',
  k: 'ĸƙᶄⱪꝁꝃꝅꞣ',
  l: 'łƚȴɫɬɭᶅⱡꝉꞎ',
  m: 'ɱᵯᶆ',
  n: 'ŋƞȵɲɳᵰᶇꞑꞥ',
  o: 'øɔɵᶗⱺꝋꝍ',
  p: 'ƥᵱᵽᶈꝑꝓꝕ',
  q: 'ɋʠꝗꝙ',
  r: 'ɍɼɽɾᵲᵳᶉꞃꞧꝛ',
  s: 'ȿʂʃʆᵴᶊᶋᶘẜẝꞅꞩꟊ',
  t: 'ŧƫƭȶʈᵵⱦꞇ',
  u: 'ʉʊᶙꞹ',
  v: 'ʋᶌⱱⱴꝟ',
  w: 'ƿⱳ',
  x: 'ᶍ',
  y: 'ƴɏỿ',
  z: 'ƶƺȥɀʐʑʒʓᵶᶎᶚⱬ',
  ae: 'æ',
  oe: 'œ',
  ss: 'ß',
  th: 'þꝥꝧ',
  σ: 'ς',
  // Cyrillic ones on a keyboard without them, and those of before 1918
  а: 'ә',
  ае: 'ӕ',
  в: 'ᲀ',
  г: 'ґғҕӷӻ',
  д: 'ᲁ',
  е: 'ѣѥᲇ',
  ж: 'җ',
  з: 'ҙӡꙁ',
  и: 'ѵҋ',
  і: 'ӏ',
  к: 'қҝҟҡӄ',
  л: 'ӆԓԡԯ',
  м: 'ӎ',
  н: 'ңҥӈӊԣԩ',
  о: 'ѡѻѽөҩᲂ',
  п: 'ҧԥ',
  р: 'ҏ',
  с: 'ҫᲃ',
  т: 'ҭꚋᲄᲅ',
  от: 'ѿ',
  у: 'үұѹѫꙋᲈ',
  ф: 'ѳ',
  х: 'һҳӽӿԧ',
  ч: 'ҷҹӌҽҿ',
  ъ: 'ᲆ',
  ц: 'ҵ',
  ы: 'ꙑ',
  ю: 'ѭ',
  я: 'ѧѩꙗ',
  кс: 'ѯ',
  пс: 'ѱ',
  // Arabic ones on the keyboards of Arabic, Persian, Urdu, Pashto and Kurdish
  ا: 'ٱٲٳ',
  ي: 'ىیۍێېۑ',
  ك: 'کڪ',
  گ: 'ګ',
  ر: 'ڕ',
  ل: 'ڵ',
  و: 'ۆۉ',
  ه: 'ةھہۃە',
  ٹ: 'ټ',
  ڈ: 'ډ',
  ڑ: 'ړ',
  ڻ: 'ڼ',
  // Hebrew letters at the end of words, and those of Yiddish
  כ: 'ך',
  מ: 'ם',
  נ: 'ן',
  פ: 'ף',
  צ: 'ץ',
  וו: 'װ',
  וי: 'ױ',
  יי: 'ײ',
  // letters that Unicode has also as a consonant with a virama; the candrabindu
  ണ്: 'ൺ',
  ന്: 'ൻ',
  ര്: 'ർൎ',
  ല്: 'ൽ',
  ള്: 'ൾ',
  ക്: 'ൿ',
  ள: '\u0bd7',
  ত্: 'ৎ',
  '\u0902': '\u0901',
  '\u0a82': '\u0a81',
  // kana that are written small in names of places; signs that are typed for the ideograph of zero; kanji of names
  か: 'ゕヵ',
  け: 'ゖヶ',
  〇: '○◯',
  高: '髙',
  崎: '﨑',
  // noncharacters that stand for what NFKD would make letters
  '™': '\ufdd0',
  '℠': '\ufdd1',
};

/** Texts whose characters stand for those of the first one: homophones of Amharic, katakana, radicals of Chinese. */
const SERIES: readonly (readonly string[])[] = [
  ['ሀሁሂሀሄህሆሀ', 'ሐሑሒሓሔሕሖሃ', 'ኀኁኂኃኄኅኆ', 'ኸኹኺኻኼኽኾ'],
  ['አኡኢአኤእኦአ', 'ዐዑዒዓዔዕዖኣ'],
  ['ሰሱሲሳሴስሶሷ', 'ሠሡሢሣሤሥሦሧ'],
  ['ጸጹጺጻጼጽጾ', 'ፀፁፂፃፄፅፆ'],
  [
    'ぁあぃいぅうぇえぉおかきくけこさしすせそたちっつてとなにぬねのはひふへほまみむめもゃやゅゆょよらりるれろゎわゐゑをん',
    'ァアィイゥウェエォオカキクケコサシスセソタチッツテトナニヌネノハヒフヘホマミムメモャヤュユョヨラリルレロヮワヰヱヲン',
  ],
  [
    '厂乛乚乙亻冂几刀刂卜㔾小小尢尣尢尣巳幺彑彐忄心扌攵旡日月歺民氵氺灬爫爫丬牛犭王疋目示礻竹糹纟罓罒网网𦉫羊羊羋耂肀聿肉臼艹艹艹虎衤覀西见角𧢲讠贝足车辶辶辶邑钅長镸长门阜阝雨青韦页风飞食𩙿飠饣𩠐马骨鬼鱼鸟鹵麦黄黾斉齐歯齿龍龙龜亀',
    '⺁⺂⺃⺄⺅⺆⺇⺈⺉⺊⺋⺌⺍⺎⺏⺐⺑⺒⺓⺔⺕⺖⺗⺘⺙⺛⺜⺝⺞⺠⺡⺢⺣⺤⺥⺦⺧⺨⺩⺪⺫⺬⺭⺮⺯⺰⺱⺲⺳⺴⺵⺶⺷⺸⺹⺺⺻⺼⺽⺾⺿⻀⻁⻂⻃⻄⻅⻆⻇⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜⻝⻞⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲',
  ],
];

/** By what they are the same as: patterns of several characters. */
const SEQUENCES: Readonly<Record<string, readonly string[]>> = {
  "l'l": ['l·l', 'l•l', 'l‧l'],
  եւ: ['եվ'],
  แ: ['เเ'],
  ແ: ['ເເ'],
  ஸ்ரீ: ['ஶ்ரீ'],
  '\u17d2\u178f': ['\u17d2\u178a'], // the same below another letter
  ണ്: ['ൺ്'],
  ന്: ['ൻ്'],
  ര്: ['ർ്'],
  ല്: ['ൽ്'],
  ള്: ['ൾ്'],
  // a nasal before a consonant of its kind is also written as an anusvara: हिन्दी, हिंदी
  '\u0902': ['ङ्(?=[क-घ])', 'ञ्(?=[च-झ])', 'ण्(?=[ट-ढ])', 'न्(?=[त-ध])', 'म्(?=[प-भ])'],
  '\u0a82': ['ઙ્(?=[ક-ઘ])', 'ઞ્(?=[ચ-ઝ])', 'ણ્(?=[ટ-ઢ])', 'ન્(?=[ત-ધ])', 'મ્(?=[પ-ભ])'],
  '\u0982': ['ঙ্(?=[ক-ঘ])'],
  '\u0c02': ['ఙ్(?=[క-ఘ])', 'ఞ్(?=[చ-ఝ])', 'ణ్(?=[ట-ఢ])', 'న్(?=[త-ధ])', 'మ్(?=[ప-భ])'],
  '\u0c82': ['ಙ್(?=[ಕ-ಘ])', 'ಞ್(?=[ಚ-ಝ])', 'ಣ್(?=[ಟ-ಢ])', 'ನ್(?=[ತ-ಧ])', 'ಮ್(?=[ಪ-ಭ])'],
};

/**
 * What NFKD would make something else: trade marks, apostrophes, the voicing of kana typed after them; accents typed after
 * their letters (`Mu¨ller`); what the key of `ー` types after kana in another mode.
 */
const SIGNS = /[™℠´΄᾽᾿῾\u1ffd゛゜¨¯¸˘˙˚˛˜˝ͺ΅῀῁῍῎῏῝῞῟῭\u1fee]|[ー－−⁻₋]+/gu;
const SIGN: Readonly<Record<string, string>> = {
  '™': '\ufdd0',
  '℠': '\ufdd1',
  ゛: '\u3099',
  ゜: '\u309a',
};
const APOSTROPHE = /[´΄᾽᾿῾\u1ffd]/;
const PROLONGED = /[ー－−⁻₋]/;
const KANA = /[\p{sc=Kana}\p{sc=Hira}]$/u;
const WITHIN_WORD = /[\p{L}\p{M}]\p{Sk}*_\p{Sk}*\p{L}/u;

/**
 * Marks on letters, and what is not seen: format characters, the tatweel, small Quranic letters, the high hamza. The nukta of
 * borrowed sounds, and the intonation of Armenian. Not the vowel signs of scripts that are written with them, nor the voicing
 * of kana.
 */
const MARKS =
  /[[[\p{sc=Zinh}\p{sc=Latn}\p{sc=Grek}\p{sc=Cyrl}\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}]&&[\p{Mn}\p{Me}]]--[\u3099\u309A]]|[\p{Cf}\p{DI}\u0640\u02c6\u02c7\u02c9\u02cd\u07fa\u06e5\u06e6\u08c9\u0674\u093c\u0a3c\u0abc\u0cbc\u055b\u055c\u055e\u055f]/gv;

/** Between letters of Arabic, where keyboards without it have a space or nothing. */
const ARABIC_GAP = /(?<=\p{scx=Arab})\u200c(?=\p{scx=Arab})/gu;

/**
 * Latin letters beside Cyrillic ones that look alike, or stand for one that a keyboard lacks: `кiт`, `Шаhар`. Not those of
 * a Latin word with a Cyrillic ending.
 */
const LATIN = /(?<=\p{sc=Cyrl})[abcehijkmopstxy]+(?![a-z])|(?<![a-z])[abcehijkmopstxy]+(?=\p{sc=Cyrl})/gu;
const LOOKALIKES = { latin: 'abcehijkmopstxy', cyrillic: 'авсехіјкморѕтху' };
/** What is typed for a palochka within a word: `Г1алг1ай`. */
const PALOCHKA = /(?<=\p{sc=Cyrl})[1l](?=\p{sc=Cyrl})/gu;
const CYRILLIC = /[\u0400-\u052f]/;
const LATIN_OR_1 = /[1a-z]/;

const ITERATION = /[ゝヽ々〻]/;
const REPEATABLE = /[\p{sc=Hira}\p{sc=Kana}\p{sc=Hani}○◯]/u;
const VOICING = '\u3099';

const DIGIT = /\p{Nd}/u;

const FOLDED = new Map([
  ...Object.entries(FORMS).flatMap(([plain, forms]) => [...forms].map((form) => [form, plain] as const)),
  ...SERIES.flatMap(([first = '', ...others]) => {
    const plain = [...first];
    return others.flatMap((forms) =>
      [...forms].map((form, place) => [form, plain[place] as string] as const),
    );
  }),
]);
const LETTERS = [...FOLDED.keys()].join('');
for (const [plain, patterns] of Object.entries(SEQUENCES))
  for (const pattern of patterns) FOLDED.set(pattern.replace(/\(.*/, ''), plain);

/**
 * Marks above and below a letter of Thai, Lao or Burmese in another order than usual, which look the same: `นํ้า`, `น้ำ`. The
 * usual order is that of their code points. Ranges: letters; marks that come first, second and third; the script.
 */
const STACKS = [
  String.raw`\u0e01-\u0e2e \u0e31\u0e34-\u0e3a\u0e47 \u0e48-\u0e4c \u0e4d \u0e00-\u0e7f`,
  String.raw`\u0e81-\u0eae\u0ebc \u0eb1\u0eb4-\u0ebb \u0ec8-\u0ecc \u0ecd \u0e80-\u0eff`,
  String.raw`\u1000-\u102a\u1031\u103b-\u103f \u102d\u102e \u102f\u1030 \u1032\u1036\u1037 \u1000-\u109f`,
].map((ranges) => {
  const [letters, first, second, third, script] = ranges.split(' ');
  const isOutOfOrder = `(?:(?<=[${third}])[${second}]|[${second}${third}]*[${first}])`;
  const marks = `[${first}${second}${third}]`;
  return `[${second}${third}](?<=[${letters}][${first}]{0,3}.)${isOutOfOrder}${marks}*(?!${marks}|[\\p{M}--[${script}]])`;
});

/** The longer ones first. */
const FORM = new RegExp(
  [...Object.values(SEQUENCES).flat(), ...STACKS, `[${LETTERS}[\\p{Nd}--[0-9]]]`].join('|'),
  'gv',
);

/** Removes what does not count when texts are compared. */
export function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase().replaceAll('`', "'");
  let folded = text.replace(SIGNS, signs).normalize('NFKD');
  if (folded.includes('\u200c')) folded = folded.replace(ARABIC_GAP, "'");
  folded = folded.replace(MARKS, '').toLowerCase();
  if (ITERATION.test(folded)) folded = withoutIteration(folded);
  folded = folded.replace(FORM, plainOf).normalize('NFC');
  if (!CYRILLIC.test(folded) || !LATIN_OR_1.test(folded)) return folded;
  return folded.replace(LATIN, cyrillic).replace(PALOCHKA, 'і');
}

function signs(found: string, at: number, text: string): string {
  if (PROLONGED.test(found))
    return KANA.test(text.slice(Math.max(0, at - 2), at)) ? 'ー'.repeat(found.length) : found;
  if (APOSTROPHE.test(found)) return "'";
  const around = `${text.slice(Math.max(0, at - 4), at)}_${text.slice(at + 1, at + 5)}`;
  return SIGN[found] ?? (WITHIN_WORD.test(around) ? '' : ' ');
}

function cyrillic(latin: string): string {
  return latin.replace(/./g, (letter) => LOOKALIKES.cyrillic.charAt(LOOKALIKES.latin.indexOf(letter)));
}

function plainOf(form: string): string {
  const plain = FOLDED.get(form);
  if (plain !== undefined) return plain;
  if (DIGIT.test(form)) return digitOf(form);
  return [...form].toSorted().join('');
}

/** The digits of a script follow one another from 0 to 9 (The Unicode Standard, section 4.6). */
function digitOf(digit: string): string {
  const point = digit.codePointAt(0) as number;
  let before = 0;
  while (DIGIT.test(String.fromCodePoint(point - before - 1))) before += 1;
  return String(before % 10);
}

/** `こゝろ` as `こころ`. */
function withoutIteration(text: string): string {
  let written = '';
  let latest = '';
  for (const sign of text) {
    if (latest !== '' && ITERATION.test(sign)) {
      written += latest;
    } else {
      written += sign;
      if (sign !== VOICING) latest = REPEATABLE.test(sign) ? sign : '';
    }
  }
  return written;
}
