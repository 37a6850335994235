-- Divides the table of books into 16 partitions by the hash of the id, for 100 million books and more. It makes the table if
-- it is missing; otherwise it moves its books, all or none, unless somebody has added something to it. Run it while no
-- service runs, as the role that owns the database:
-- psql -v ON_ERROR_STOP=1 -f partition-books.sql postgres://catalogue@db.example.org/catalogue
-- with the password in PGPASSWORD or ~/.pgpass.

begin;

do $$
declare others text;
begin
  select string_agg(what, ', ') into others from (
    select format('column %I', attname) from pg_attribute
      where attrelid = to_regclass('books') and attnum > 0 and not attisdropped
        and attname not in ('id', 'title', 'author', 'year')
    union all select format('index %s', indexrelid::regclass) from pg_index
      where indrelid = to_regclass('books') and not indisprimary
    union all select format('constraint %I', conname) from pg_constraint
      where conrelid = to_regclass('books') and contype not in ('p', 'n')
        and conname not in ('books_id_check', 'books_year_check')
    union all select format('trigger %I', tgname) from pg_trigger
      where tgrelid = to_regclass('books') and not tgisinternal and tgname not like 'book\_log\_%'
    union all select format('policy %I', polname) from pg_policy where polrelid = to_regclass('books')
    union all select 'rights of other roles' from pg_class, aclexplode(relacl)
      where oid = to_regclass('books') and grantee <> relowner group by oid
    union all select format('publication %I', pubname) from pg_publication_rel
      join pg_publication on pg_publication.oid = prpubid where prrelid = to_regclass('books')
  ) as added (what);
  if others is not null then
    raise exception 'The table books has more than the service makes, which would be lost: %.', others
      using hint = 'Drop it, and make it again afterwards.';
  end if;
end $$;

create sequence if not exists books_id_seq maxvalue 9007199254740991;
alter table if exists books rename to books_before;
alter index if exists books_pkey rename to books_before_pkey;

create table books (
  id bigint primary key default nextval('books_id_seq') check (id between 1 and 9007199254740991),
  title text not null default '',
  author text not null default '',
  year bigint not null default 0 check (year between -9007199254740991 and 9007199254740991)
) partition by hash (id);

do $$
begin
  for n in 0..15 loop
    execute format('create table books_%s partition of books for values with (modulus 16, remainder %s)', n, n);
  end loop;
  if to_regclass('books_before') is not null then
    insert into books (id, title, author, year) select id, title, author, year from books_before order by id;
    drop table books_before;
  end if;
end $$;

commit;

analyze books;
