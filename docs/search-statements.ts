// Owns: the page src/stores/search-statements.md: the complete statements of typical searches.

import { readQuery } from '../src/api/query.ts';
import type { Place } from '../src/books/search.ts';
import { findPage } from '../src/stores/finding.ts';
import { POSTGRES_DIALECT } from '../src/stores/postgres/dialect.ts';
import type { IndexDialect, Statement } from '../src/stores/search-sql.ts';
import { SQLITE_DIALECT } from '../src/stores/sqlite/dialect.ts';

const MANY = 1_000_000;

interface Example {
  readonly query: string;
  readonly prefer?: string;
  /** The place of the cursor. */
  readonly after?: Place;
  readonly matches: number;
  /** How many rows the statements find that select rows, one after the other; then as many as they want. */
  readonly rows?: readonly number[];
  readonly note: string;
}

const EXAMPLES: readonly Example[] = [
  {
    query: 'limit=2',
    matches: MANY,
    note: 'All books, by id. The last statement, which reads the books of the page, is the same for every search.',
  },
  {
    query: 'sort=year&limit=2&offset=500',
    matches: MANY,
    note: 'All books in another order, from an offset.',
  },
  {
    query: 'sort=title&limit=2',
    after: ['dune', 7],
    matches: MANY,
    note: 'The page after a cursor, whose place is `["dune", 7]`.',
  },
  {
    query: 'sort=-year,title&limit=2',
    after: [1965, 'dune', 7],
    matches: MANY,
    note: 'The same in mixed directions.',
  },
  { query: 'year=1965&limit=2', matches: 12, note: 'Few matches: they are collected and sorted.' },
  { query: 'q=dune&limit=2', matches: 12, note: 'The same with words, by relevance.' },
  {
    query: 'q=dune&limit=2',
    matches: MANY,
    rows: [1, 3],
    note: 'Many matches, by relevance: here one title is the query, and three begin with it.',
  },
  {
    query: 'title_starts_with=dune&sort=title&limit=2',
    matches: MANY,
    note: 'A range of titles, in their order.',
  },
  {
    query: 'year_gte=1990&year_lte=1999&sort=author&limit=2',
    matches: MANY,
    rows: [0],
    note: 'Many matches that are far away in the order: after the walk has found too few, all are collected.',
  },
  {
    query: 'title_contains=the&author_contains=herb*&sort=-year&limit=2',
    matches: MANY,
    note: 'Words of one field, and the beginning of a word, in another order.',
  },
  {
    query: 'q=the&sort=id&limit=2',
    prefer: 'count=exact',
    matches: MANY,
    note: 'With the number of all matches (`Prefer: count=exact`).',
  },
];

const HEAD = `# The statements of searches

What the service sends to its store for a page of books, with the values in their places. The steps are those of
[finding.ts](finding.ts): collect, walk, collect all; the index and its columns are those of the two files
\`book-index.ts\`. \`in_time()\` fails when a search takes too long; on PostgreSQL the server's \`statement_timeout\` does that.

\`npm run docs\` generates this page.
`;

/** @returns the page. */
export async function describeSearches(): Promise<string> {
  const parts = [HEAD];
  for (const example of EXAMPLES) {
    parts.push(`## \`GET /books?${example.query}\`\n\n${example.note}\n`);
    for (const [name, dialect] of [
      ['SQLite', SQLITE_DIALECT],
      ['PostgreSQL', POSTGRES_DIALECT],
    ] as const) {
      const all = await statementsOf(example, dialect);
      const statements = example === EXAMPLES[0] ? all : all.filter((sql) => !isForBooks(sql));
      parts.push(`${name}:\n\n\`\`\`sql\n${statements.map(laidOut).join('\n\n')}\n\`\`\`\n`);
    }
  }
  return parts.join('\n');
}

/** The statements of a search whose answers are those of the example. */
async function statementsOf(example: Example, dialect: IndexDialect): Promise<readonly string[]> {
  const query = readQuery(example.query, true, example.prefer);
  if ('invalid' in query) throw new Error(`${query.invalid} is invalid.`);
  const sent: string[] = [];
  const rows = [...(example.rows ?? [])];
  const select = async (statement: Statement): Promise<unknown[][]> => {
    const sql = withValues(statement, dialect);
    sent.push(sql);
    if (/^\s*select count/.test(sql)) return [[example.matches]];
    if (/^\s*with hit/.test(sql)) return [[example.matches, 1, 'dune', 'frank herbert', 1965]];
    if (isForBooks(sql)) return [[7, 'Dune', 'Frank Herbert', 1965, 1]];
    const limit = Number(statement.values.at(/\blimit \S+ offset /.test(statement.sql) ? -2 : -1));
    return Array.from({ length: rows.shift() ?? limit }, () => [7, 'dune', 'frank herbert', 1965]);
  };
  const count = async (statement: Statement) => Number((await select(statement))[0]?.[0]);
  await findPage({ ...query.search, after: example.after }, { dialect, select, count });
  return sent;
}

const isForBooks = (sql: string) => / as bytes\b/.test(sql);

function withValues({ sql, values }: Statement, dialect: IndexDialect): string {
  const named = new Map(values.map((value, position) => [dialect.placeholder(position + 1), value]));
  return sql.replace(/[?$]\d+/g, (name) => {
    const value = named.get(name);
    return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
  });
}

/** A text, a parenthesis, or the space before a clause. */
const CLAUSE =
  /'(?:[^']|'')*'|[()]| (?=(?:from|where|(?:cross|left) join|order by|limit|page as|counted as|sum\(.*\) over) )/g;

/** Each clause on a line of its own, indented by the parentheses around it. */
function laidOut(sql: string): string {
  let depth = 0;
  const clauses = sql
    .replace(/\s+/g, ' ')
    .replace(/(?<=\() | (?=\))/g, '')
    .trim()
    .replace(CLAUSE, (part) => {
      if (part === '(') depth += 1;
      if (part === ')') depth -= 1;
      return part === ' ' ? `\n${'  '.repeat(depth + 1)}` : part;
    });
  return `${clauses};`;
}
