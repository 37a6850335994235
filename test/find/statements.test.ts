// One statement of each step of a search, as a store gets it: a change that lets searches read more is seen here.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readQuery } from '../../src/api/query.ts';
import { POSTGRES_DIALECT } from '../../src/stores/postgres/dialect.ts';
import { findPage } from '../../src/stores/search-pages.ts';
import type { IndexDialect, Statement } from '../../src/stores/search-sql.ts';
import { SQLITE_DIALECT } from '../../src/stores/sqlite/dialect.ts';

interface Golden {
  readonly step: string;
  readonly query: string;
  readonly dialect: IndexDialect;
  readonly matches: number;
  /** Of the statement among those of the search. */
  readonly position: number;
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

const GOLDEN: readonly Golden[] = [
  {
    step: 'collecting few matches, by relevance',
    query: 'q=dune&limit=2',
    dialect: POSTGRES_DIALECT,
    matches: 12,
    position: 0,
    sql: `with hit as materialized (
        select i.id, i.title_key, i.author_key, i.year from book_index i where i.words @@ $1::tsquery limit 1001
      ), counted as (select count(*) as hits from hit), page as (
        select i.id, i.title_key, i.author_key, i.year from hit i where (select hits from counted) <= 1000
        order by case when i.title_key >= $2 and i.title_key < $3 then 0 else 1 end,
          case when i.title_key >= $4 and i.title_key < $5 then i.title_key else '' end, i.id limit $6
      )
      select hits, i.* from counted left join page i on true
      order by case when i.title_key >= $7 and i.title_key < $8 then 0 else 1 end,
        case when i.title_key >= $9 and i.title_key < $10 then i.title_key else '' end, i.id`,
    values: ["'dune'", 'dune', 'dune!', 'dune', 'dune!', 3, 'dune', 'dune!', 'dune', 'dune!'],
  },
  {
    step: 'reading titles that begin with the words, of many matches',
    query: 'q=dune&limit=2',
    dialect: SQLITE_DIALECT,
    matches: 1_000_000,
    position: 1,
    sql: `select i.id, i.title_key, i.author_key, i.year from (
        select i.id from book_index i indexed by book_index_titles
        where true and i.title_key >= ?1 and i.title_key < ?2 and (i.id % 257 or in_time()) and (i.title_key,i.id) > (?3,?4)
        order by i.title_key, i.id limit ?5
      ) as page cross join book_index i where i.id = page.id order by i.title_key, i.id`,
    values: ['dune', 'dune!', 'dune', 0, 3],
  },
  {
    step: 'walking in the order of the page',
    query: 'title_contains=dune&sort=author&limit=2',
    dialect: POSTGRES_DIALECT,
    matches: 1_000_000,
    position: 1,
    sql: `select i.id, i.title_key, i.author_key, i.year from (
        select i.id from (
          select i.* from book_index i where true order by i.author_key, i.id limit $2
        ) i where true and i.words @@ $1::tsquery limit $3
      ) as page cross join book_index i where i.id = page.id order by i.author_key, i.id`,
    values: ["'dune':A", 20_000, 3],
  },
  {
    step: 'collecting all, after the walk has found too few',
    query: 'year_gte=1990&year_lte=1999&sort=author&limit=2',
    dialect: SQLITE_DIALECT,
    matches: 1_000_000,
    position: 2,
    sql: `select i.id, i.title_key, i.author_key, i.year from (
        select i.id as id from book_index i where true and i.year >= ?1 and i.year <= ?2 and (i.id % 257 or in_time())
        order by i.author_key, i.id limit ?3
      ) as page cross join book_index i where i.id = page.id order by i.author_key, i.id`,
    values: [1990, 1999, 3],
  },
];

for (const { step, query, dialect, matches, position, sql, values } of GOLDEN) {
  test(`the statement for ${step}`, async () => {
    const read = readQuery(query, true, undefined);
    assert.ok('search' in read);
    const sent: Statement[] = [];
    const select = async (statement: Statement) => {
      sent.push(statement);
      return /count\(\*\) (?:from|as hits)/.test(statement.sql) ? [[matches]] : []; // none of them is near
    };
    await findPage(read.search, { dialect, select, count: async () => undefined });
    assert.deepEqual(
      { sql: onOneLine(sent[position]?.sql ?? ''), values: sent[position]?.values },
      { sql: onOneLine(sql), values },
    );
  });
}

function onOneLine(sql: string): string {
  return sql
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(?<=\() | (?=\))/g, '')
    .trim();
}
