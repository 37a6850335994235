// Owns: request bodies byte by byte, numbers, keys, ids and texts, and what each of them means.

/** The fields of a new book that was sent without any (rule 1). */
export const EMPTY = { title: '', author: '', year: 0 };

/** The fields that a body gives a book. */
export type Fields = Readonly<Partial<typeof EMPTY>>;
export type Body = string | Uint8Array;

/** One byte for each character. */
const bytes = (text: string) => Buffer.from(text, 'latin1');
/** A title of raw bytes. */
const titled = (text: string) => bytes(`{"title":"${text}"}`);
const utf16 = (text: string, order: 'little' | 'big') => {
  const encoded = Buffer.from(text, 'utf16le');
  return order === 'little' ? encoded : encoded.swap16();
};
/** A number that repeats a digit `count` times. */
const long = (digit: string, count: number) => digit.repeat(count);

/** Bodies that are books (rules 1 and 6), and the fields that each has. */
// biome-ignore format: a line for each case would make a thousand lines
export const READABLE: readonly (readonly [Body, Fields])[] = [
  ['{}', {}], [' {} ', {}], ['\t\n\r {\t\n\r }\t\n\r ', {}], ['{"title":""}', { title: '' }],
  [' { "title" : "a" , "year" : 1 } ', { title: 'a', year: 1 }],
  ['{"title":"a","author":"b","year":1}', { title: 'a', author: 'b', year: 1 }],
  ['{"year":1,"author":"b","title":"a"}', { title: 'a', author: 'b', year: 1 }],
  ['{"title":"\\"\\\\\\/\\b\\f\\n\\r\\t"}', { title: '"\\/\b\f\n\r\t' }],
  ['{"title":"\\u0041\\u00e9\\u6f22\\uD83D\\uDCDA"}', { title: 'Aé漢📚' }],
  ['{"title":"\\ud83d\\udcda\\uD83d\\udCDA"}', { title: '📚📚' }],
  ['{"title":"\\u0001\\u001F\\u007f"}', { title: '\u0001\u001f\u007f' }],
  ['{"title":"\u007f\u0080\u2028\u2029"}', { title: '\u007f\u0080\u2028\u2029' }],
  ['{"title":"\\uFFFF\\uFFFE\\uFEFF"}', { title: '\uffff\ufffe\ufeff' }],
  ['{"title":"\\uDBFF\\uDFFF"}', { title: '\u{10ffff}' }],
  ['{"title":"\u{10ffff}\uffff\ufffe"}', { title: '\u{10ffff}\uffff\ufffe' }],
  ['{"title":"\\\\u0000"}', { title: '\\u0000' }], ['{"title":"\\\\ud800"}', { title: '\\ud800' }],
  ['{"title":"\\/*no comment*\\/ // none"}', { title: '/*no comment*/ // none' }],
  ['{"title":"null","author":"true"}', { title: 'null', author: 'true' }],
  ['{"title":"{\\"title\\":1}"}', { title: '{"title":1}' }], ['{"title":"1.5e3"}', { title: '1.5e3' }],
  ['{"title":"x","x":null}', { title: 'x' }], ['{"x":[]}', {}], ['{"x":[[[]],{},{"":{}}]}', {}],
  ['{"x":[1,-1,0.5,1e400,-1e-400,true,false,null,"\\ud800","\\u0000"]}', {}],
  ['{"x":{"title":1,"year":"x"},"title":"outer"}', { title: 'outer' }],
  ['{"x":"\\udc00","title":"beside"}', { title: 'beside' }], [titled('\xc3\xa9'), { title: 'é' }],
  [titled('\xe2\x82\xac'), { title: '€' }], [titled('\xf0\x9f\x93\x9a'), { title: '📚' }],
  [titled('\xf4\x8f\xbf\xbf'), { title: '\u{10ffff}' }], [titled('\xee\x80\x80'), { title: '\ue000' }],
  [titled('\xed\x9f\xbf'), { title: '\ud7ff' }], [titled('\xef\xbb\xbf'), { title: '\ufeff' }],
];

/** Bytes of the longest login (rule 22). */
export const LOGIN_LIMIT = 4096;

/** Bodies that are not a JSON object in UTF-8 (rules 4 and 6). */
// biome-ignore format: a line for each case would make a thousand lines
export const UNREADABLE: readonly Body[] = [
  // Not an object
  '', ' ', 'null', '[]', '[{"title":"x"}]', '"x"', '1', 'true', '\ufeff{"title":"x"}',
  '"{}"', '0', '-0', '1.5', '1e400', 'false', '[null]', '[{}]', '[[]]', '{}{}', '{},', '{} {}', '[],{}', '\n',
  '\t', '\0', '\x1a', 'undefined', 'NaN', 'x', '{}x', '{}\0', '{}\x0b', '\x0c{}', '\xa0{}', '\u2028{}',
  '{}\u3000', '\u200b{}', '{}//', '{}/**/', '{};', '({})', 'title=x&year=1', '<title>x</title>',
  '---\ntitle: x', '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nx\r\n--b--\r\n', '{}\n{}',
  '#{}', '!{}', '{}]', '{}}',
  // Structure
  '{', '{"title":"x"}}', '{"title":"x",}',
  '}', ']', '{]', '[}', '{"title"}', '{"title":}', '{"title":,}', '{:"x"}', '{,}', '{,"title":"x"}',
  '{"title":"x",,}', '{"title":"x";"year":1}', '{"title":"x" "year":1}', '{"title" "x"}', '{"title"="x"}',
  '{"title"=>"x"}', '{"title"::"x"}', '{"title":"x":"y"}', '{"title":"x","year"}', '{"title":"x","year":}',
  '{{}}', '{[]}', '{"title":"x"', '{"title":"x",', '{"title":"x","year":1', '{"title":"x","year":1,}',
  '{"title":"x","x":[1,]}', '{"x":[1,2}', '{"x":[1 2]}', '{"x":[,1]}', '{"x":[1,,2]}', '{"x":{"y":1,}}',
  '{"x":[}', '{"x":{]', '{"x":(1)}', '{"x":[1}]',
  // Keys
  "{'title':'x'}",
  '{title:"x"}', '{1:"x"}', '{null:"x"}', '{true:1}', '{["title"]:"x"}', '{\'title\':"x"}', '{`title`:"x"}',
  '{"ti\ntle":"x"}', '{"a\\x":1}', '{"\\u00zz":1}', '{...{}}', '{"title"\0:"x"}',
  // Comments
  '{/**/}', '{"title":"x"/**/}', '{"title":"x"//y\n}', '/* x */{}', '// x\n{}', '{"title":/**/"x"}', '{} # x',
  '{"year":1/**/}', '<!-- x -->{}',
  // Texts
  '{"title":"a\nb"}',
  '{"title":\'x\'}', '{"title":`x`}', '{"title":"x}', '{"title":x"}', '{"title":"x""y"}', '{"title":"x"y}',
  '{"title":"\\"}', '{"title":"\\x41"}', '{"title":"\\a"}', '{"title":"\\0"}', '{"title":"\\v"}',
  '{"title":"\\\'"}', '{"title":"\\U0041"}', '{"title":"\\u"}', '{"title":"\\u1"}', '{"title":"\\u12"}',
  '{"title":"\\u123"}', '{"title":"\\u12g4"}', '{"title":"\\u{41}"}', '{"title":"\\u+041"}',
  '{"title":"\\u 041"}', '{"title":"\\ud83d\\u"}', '{"title":"\\ud83d\\udc"}', '{"title":"\\\n"}',
  '{"title":"\\ x"}', '{"title":"\\é"}', '{"title":"\\📚"}', '{"title":"\t"}', '{"title":"\r"}',
  '{"title":"\0"}', '{"title":"\x01"}', '{"title":"\x1f"}', '{"title":"\b"}', '{"title":u"x"}',
  '{"title":"x"+"y"}',
  // Numbers
  ...[ '00', '01', '-01', '-00', '+0', '-', '+', '--1', '-+1', '- 1', '1 2', '1.', '-1.', '.1', '-.1', '1..0',
  '1.0.0', '1.e1', '.e1', '1e', '1e+', '1e-', '1e 1', '1 e1', '1e1.0', '1e0x1', '1ee1', '1e++1', '1E', '0e',
  '0.e', '00.0', '0x', '0x1F', '0o7', '0b1', '1_000', "1'000", '1,000', '1n', '1f', '1L', '1d', '1/2', '1+1',
  '0,5', 'nan', 'NaN', '-NaN', 'Inf', 'Infinity', '-Infinity', '+Infinity', '1#INF', '∞', '٣', '１', '²', '1é',
  'e1', '1\0', '-\0', '--', '1e400x', '0.5-', 'Number(1)', ].map((number) => `{"x":${number}}`),
  // Words
  ...[ 'True', 'TRUE', 'nul', 'nulll', 'Null', 'NULL', 'nil', 'None', 'tru', 'truee', 'fals', 'undefined',
  'void', 'true false', '!true', 'n\\u0075ll', 'new Date()', 'function(){}', '/x/', 'Symbol()', '@x', '$x',
  ].map((word) => `{"x":${word}}`),
  // Other encodings
  ...(['little', 'big'] as const).flatMap((order) => [ utf16('{}', order),
  utf16('\ufeff{"title":"x"}', order), utf16('{"title":"漢"}', order), ]), bytes('\xef\xbb\xbf{}'),
  bytes('{}\xef\xbb\xbf'), bytes('\xff\xfe{}'), bytes('\xfe\xff{}'), bytes('\xef\xbb\xbf'),
  bytes('\xef\xbb{}'), bytes('{\0}\0'), bytes('+AHs-+AH0-'), bytes('\x00\x00\x00{\x00\x00\x00}'),
  // Bytes that are not UTF-8: alone, truncated, overlong, surrogates, beyond the last character
  ...[ '\x80', '\xbf', '\xc3', '\xe2\x82', '\xf0\x9f\x93', '\xc3(', '\xe2(\xa1', '\xe2\x82(', '\xf0(\x8c\xbc',
  '\xf0\x90(\xbc', '\xf0\x9f\x93\xc3\xa9', '\xa0\xa1', '\xc0\x80', '\xc0\xaf', '\xc1\xbf', '\xe0\x80\x80',
  '\xe0\x80\xaf', '\xe0\x9f\xbf', '\xf0\x80\x80\x80', '\xf0\x80\x80\xaf', '\xf0\x8f\xbf\xbf', '\xed\xa0\x80',
  '\xed\xad\xbf', '\xed\xb0\x80', '\xed\xbf\xbf', '\xed\xa0\xbd\xed\xb3\x9a', '\xf4\x90\x80\x80',
  '\xf5\x80\x80\x80', '\xf7\xbf\xbf\xbf', '\xf8\x88\x80\x80\x80', '\xfb\xbf\xbf\xbf\xbf',
  '\xfc\x84\x80\x80\x80\x80', '\xfd\xbf\xbf\xbf\xbf\xbf', '\xfe', '\xff', '\xe9', '\x93x\x94',
  '\xe2\x82\xac\xe2', ].map(titled), bytes('{"\xff":1}'), bytes('{"x":"\xff"}'), bytes('{"title":"ok"}\xff'),
  bytes('\xff{"title":"ok"}'), bytes('{"title":"ok","x":\xff}'),
  // Deep
  '['.repeat(100_000), '['.repeat(100_000) + ']'.repeat(100_000), '{"a":'.repeat(100_000),
  '{"title":'.repeat(100_000), `{"x":${'['.repeat(100_000)}}`,
  `${'['.repeat(100_000)}{}${']'.repeat(100_000)}`, `${'{"":'.repeat(50_000)}1${'}'.repeat(49_999)}`,
  ']'.repeat(100_000), '"'.repeat(99_999), '\\'.repeat(100_000), ','.repeat(100_000),
  `${'{}'.repeat(50_000)}`, ' '.repeat(100_000), '-'.repeat(100_000),
];

/** Values that are neither a title nor an author (rules 2 and 4). */
// biome-ignore format: a line for each case would make a thousand lines
export const NO_TEXTS: readonly string[] = [
  'null', 'true', 'false', '0', '1.5', '-1e400', '[]', '["x"]', '[[]]', '{}', '{"x":"y"}', '{"toString":"x"}',
  '{"length":1}', '"\\u0000"', '"x\\u0000"', '"\\u0000x"', '"\\ud800"', '"\\udfff"', '"\\ud800x"',
  '"x\\udc00"', '"\\udc00\\ud800"', '"\\ud83d\\ud83d\\udcda"', '"\\ud83d\\udcda\\udcda"', '"\\ud800\\u0041"',
  '"\\uDBFF"', '"\\ud83d\\\\udcda"', '"\\uD83D \\uDCDA"', '"\\ud83d\\n\\udcda"',
];

/** Values that are not a year (rules 2 and 3). */
// biome-ignore format: a line for each case would make a thousand lines
export const NO_YEARS: readonly string[] = [
  '0.1', '1e-3', '2020.00000000000000001', '9007199254740991.2', '-1e400',
  'null', 'true', 'false', '""', '"1"', '"x"', '" 1"', '"1e3"', '"NaN"', '"0x10"', '[]', '[1]', '[[1]]', '{}',
  '{"year":1}', '{"valueOf":1}', '0.5', '-0.5', '1.1', '0.1e0', '1e-1', '10e-2', '15e-1', '123.456e2',
  '1e-400', '-1e-400', '1e-99999', '0.000000000000000000001', '1.0000000000000000000000001',
  '4503599627370496.5', '4503599627370497.5', '9007199254740990.5', '9007199254740991.5',
  '-9007199254740990.5', '9007199254740992', '9007199254740992.0', '9007199254740993', '9007199254740993.0',
  '-9007199254740992', '-9007199254740993', '9007199254740992e0', '90071992547409920e-1',
  '9.007199254740992e15', '9.007199254740993e15', '900719925474099.2e1', '0.9007199254740992e16',
  '9007199254740991.1', '9007199254740990.99999999', '90071992547409911e-1', '9007199254740991e1',
  '10000000000000000', '1e16', '9223372036854775807', '-9223372036854775808', '9223372036854775808',
  '18446744073709551615', '18446744073709551616', '1e18', '1e19', '1e21', '1e22', '1e100', '1e308',
  '1.7976931348623157e308', '1e309', '-1e309', '1e400', '1e99999', '-1e99999', `1e${long('9', 400)}`,
  `1e-${long('9', 400)}`, long('1', 309), long('9', 5000), `-${long('9', 5000)}`, `0.${long('0', 5000)}1`,
  `1.${long('0', 5000)}1`, `1${long('0', 5000)}`, `1${long('0', 16)}.${long('0', 100)}`,
  `0.${long('9', 5000)}`, '5e-324', '2.2250738585072014e-308', '4.9e-325', '2.5e-1',
  '1234567890123456789012345678901234567890',
];

/** Numbers that are years (rule 3). */
// biome-ignore format: a line for each case would make a thousand lines
export const YEARS: readonly (readonly [string, number])[] = [
  ['1.5E1', 15], ['100e-2', 1], ['0e999', 0], ['0.000', 0], ['900719925474099.1e1', 9007199254740991],
  ['0', 0], ['-0', 0], ['-0.0', 0], ['0.0', 0], ['0e0', 0], ['0E+5', 0], ['-0e-5', 0], ['0e400', 0],
  ['0e-400', 0], ['-0.000e-99999', 0], [`0e${long('9', 400)}`, 0], [`0.${long('0', 5000)}`, 0], ['1', 1],
  ['-1', -1], ['1.0', 1], ['-1.0', -1], ['1e0', 1], ['1E0', 1], ['1e+0', 1], ['1e-0', 1], ['1e00', 1],
  ['1e+002', 100], ['1.0e1', 10], ['1.5e1', 15], ['0.5e1', 5], ['0.1e1', 1], ['10e-1', 1], ['-100e-2', -1],
  ['1000e-3', 1], ['123.456e3', 123456], ['2020.00000000000000000000', 2020],
  [`2020.${long('0', 5000)}`, 2020], [`1${long('0', 400)}e-400`, 1], [`0.${long('0', 399)}1e400`, 1],
  ['1e15', 1e15], ['9e15', 9e15], ['-9e15', -9e15], ['4503599627370496', 4503599627370496],
  ['4503599627370497', 4503599627370497], ['9007199254740990', 9007199254740990],
  ['9007199254740991', 9007199254740991], ['-9007199254740991', -9007199254740991],
  ['9007199254740991.0', 9007199254740991], ['90071992547409910e-1', 9007199254740991],
  ['900719925474099100e-2', 9007199254740991], ['9.007199254740991e15', 9007199254740991],
  ['9.007199254740991E+15', 9007199254740991], ['0.9007199254740991e16', 9007199254740991],
  ['-0.9007199254740991e16', -9007199254740991], ['9007199254740.991e3', 9007199254740991],
  ['9007199254740990.0', 9007199254740990], ['2147483647', 2147483647], ['2147483648', 2147483648],
  ['-2147483649', -2147483649], ['4294967296', 4294967296],
];

/** Keys that are spelled unusually, occur twice, or have a meaning in JavaScript (rule 5). */
// biome-ignore format: a line for each case would make a thousand lines
export const KEYS: readonly (readonly [string, Fields])[] = [
  ['{"\\u0074itle":"escaped"}', { title: 'escaped' }],
  ['{"\\u0074\\u0069\\u0074\\u006c\\u0065":"escaped","\\u0079ear":7}', { title: 'escaped', year: 7 }],
  ['{"title":"first","\\u0074itle":"last"}', { title: 'last' }],
  ['{"\\u0074itle":"first","title":"last"}', { title: 'last' }],
  ['{"title":1,"title":"last"}', { title: 'last' }],
  ['{"title":null,"title":"\\u0000","title":"last"}', { title: 'last' }],
  ['{"year":"x","year":1.5,"year":2}', { year: 2 }], ['{"year":1e400,"year":1.0}', { year: 1 }],
  ['{"year":1.00000000000000000001,"\\u0079ear":2}', { year: 2 }], [
  '{"Title":"x","TITLE":1,"title ":2," title":3,"titl\\u0435":4,"title\\u0000":5,"tit\\u006ce\\u0301":6}', {},
  ], ['{"":"x","0":"y","length":5}', {}], ['{"id":7}', {}], ['{"id":"x"}', {}], ['{"id":null}', {}],
  ['{"id":-1,"title":"t"}', { title: 't' }], ['{"id":9007199254740993}', {}], ['{"id":{"id":1}}', {}],
  ['{"id":[1,2,3]}', {}], ['{"ID":1,"_id":2,"rowid":3}', {}],
  ['{"__proto__":{"title":"x","polluted":true}}', {}], ['{"__proto__":null,"title":"t"}', { title: 't' }],
  ['{"__proto__":1,"\\u005f_proto__":{"year":5}}', {}],
  ['{"constructor":{"prototype":{"polluted":true}}}', {}],
  ['{"constructor":null,"prototype":{"polluted":true}}', {}],
  ['{"toString":"x","valueOf":1,"toJSON":"x"}', {}], ['{"hasOwnProperty":1,"then":{"then":1}}', {}],
  ['{"__defineGetter__":"x","__lookupSetter__":1}', {}], ['{"x":{"__proto__":{"polluted":true}}}', {}],
  ['{"title":"t","__proto__":{"title":1}}', { title: 't' }], [
  `{${Array.from({ length: 10_000 }, (_, number) => `"k${number}":${number}.5`).join()},"year":3}`,
  { year: 3 }, ], [`{"${'k'.repeat(100_000)}":1,"year":4}`, { year: 4 }],
];

/** Path segments in place of an id (rule 10). */
// biome-ignore format: a line for each case would make a thousand lines
export const IDS: readonly string[] = [
  '1.5', '1e1', 'abc', '1'.repeat(200), '%20', '1%20', '%F0%9F%93%9A', "1'", '1;drop', '1,2',
  '0', '00', '-0', '01', '9007199254740992', '9007199254740993', '9223372036854775807',
  '9223372036854775808', '18446744073709551615', '18446744073709551616',
  '9999999999999999', '10000000000000000', '1'.repeat(5000), '0x1', '1e0', '1e3', '1.0', '1.', '.1', '+1',
  '-1', '1n', '1_0', '1,0', '%31', '1%30', '1%00', '%001', '%D9%A1', '%EF%BC%91', '%C2%B2', '%E2%85%A0',
  'NaN', 'Infinity', 'null', 'undefined', 'true', '__proto__', 'constructor', 'toString', '..', '.', '...',
  '%2e%2e', '..%2f..%2fetc%2fpasswd', '1;1', "1'--", '1%20or%201=1', '%27%20union%20select%201--', '$1', '*',
  '%25', '%2531', '~', '@1', '(1)', '1:1', 'book', ':id',
];

/** Texts that have broken programs: by their quoting, direction, length or resemblance to something else. */
// biome-ignore format: a line for each case would make a thousand lines
export const NAUGHTY: readonly string[] = [
  '"quoted" \\back\\ /slash/', '{"not":"json"}', '\\N \\. {} %s $1 ? :x NULL',
  // Words and numbers that are texts
  'undefined', 'undef', 'null', 'NULL', '(null)', 'nil', 'NIL', 'true', 'False', 'None', '\\', '\\\\', '0',
  '1', '1.00', '$1.00', '1/2', '1E2', '-1', '1/0', '0/0', '0x0', '0xffffffff',
  '123456789012345678901234567890', 'NaN', 'Infinity', '-Infinity', 'INF', '1,000.00', "1'000,00", '01000',
  '08', '1_000', '--1', '.', '..', ',', '...', '-', '--', '[]', '{}', '""',
  // Punctuation and escapes
  ",./;'[]-=", '<>?:"{}|_+', '!@#$%^&*()`~', '"', "'", '""', "''", `'"'`, `"'"'"''''"`, '\\u0000', '\\0',
  '\\x00', '%00', '\\n', '%0a%0d', '\\"', '\\u0022',
  // Spaces and control characters
  ' ', '  x  ', '\t', '\n', '\r', '\r\n', '\u000b', '\f', '\u001b[31mred\u001b[0m',
  '\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\u000e\u000f\u0010\u001a\u001b\u001c\u001f\u007f',
  '\u0080\u0085\u009f', '\u00a0\u1680\u2000\u2007\u200a\u202f\u205f\u3000',
  '\u00ad\u0600\u061c\u180e\u200b\u200c\u200d\u2060\ufeff', '\ufeffx', 'x\ufeff', '\ufffe', '\uffff',
  '\ufdd0\ufdef\u{1fffe}\u{10ffff}', '\ufffd',
  // Unicode
  'Ω≈ç√∫˜µ≤≥÷', '田中さんにあげて下さい', '사회과학원 어학연구소', '𠜎𠜱𠝹𠱓', 'Ⱥ Ⱦ ẞ ı İ', 'ÅÅÅ', '\u00e9', 'e\u0301',
  '\u212b\u00c5A\u030a', 'ﬁ ﬃ ½ ²', '\u1e9b\u0323', '\u0958\u2126', '가\u1100\u1161', '😍', '👩🏽‍🚀', '👨‍👩‍👧‍👦',
  '🏳️‍🌈', '🇫🇷🇺🇸', '0️⃣ 1️⃣', '✋🏿', '123', '١٢٣', '𝔗𝔥𝔢 𝓺𝓾𝓲𝓬𝓴', '\u{e0001}\u{e0041}',
  'T\u0335\u0301o\u0336\u0302 i\u0334\u0310n\u0337\u030avoke', `Z${'\u0301\u0316\u0335'.repeat(500)}`,
  'ثم نفس سقطت', 'בְּרֵאשִׁית', '\u202etest\u202e', '\u2066test\u2067', '\u2028x\u2029', 'a\u0020\u20e3', 'ﷺ',
  '﷽', 'العربية abc עברית', 'ก็็็็็็',
  // Markup and scripts
  '<script>alert(1)</script>', '&lt;b&gt; &amp; &#0;', '"><img src=x onerror=alert(1)>',
  'javascript:alert(1)', '<!--#exec cmd="ls"-->',
  '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]><x>&y;</x>',
  '</script><svg/onload=alert(1)>', '<![CDATA[x]]>',
  // Statements, formats, templates, commands, paths
  "'; drop table books; --", "1' or '1'='1", '1; select pg_sleep(10)', "\\'; select 1", '$$x$$', '$1', '?',
  ':title', '@title', "E'\\x00'", "x'00'", '%s%n%d%x', '%p %*.*s', '{0} {{7*7}} #{7*7} <%= 7*7 %>', '$HOME',
  '$(touch /tmp/x)', '`touch /tmp/x`', '| ls', '; ls', '&& ls', '../../../../etc/passwd', '..\\..\\x',
  '/dev/null', 'CON', 'C:\\x', 'file:///etc/passwd', '() { :; }; echo', '=1+1', '@SUM(1)', '+1', '-1+1',
  '\\N', '\\.', '\\copy', '\\x41', '{"title":"x"}', ',{"id":1}', ']}', '__proto__', 'constructor',
  // Long ones
  'x'.repeat(70_000), 'é'.repeat(40_000), '📚'.repeat(20_000), '\n'.repeat(10_000), '"'.repeat(10_000),
  '\\'.repeat(10_000), '\u0001'.repeat(10_000),
];
