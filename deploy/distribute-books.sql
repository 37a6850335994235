-- Distributes the table of books over the workers of a Citus cluster, in 12 shards. It makes the table if it is missing; otherwise
-- it moves its books, all or none. The next start of a service makes the search index again, on the same workers. Run it on the
-- coordinator while no service runs, as the role that owns the table:
-- psql -v ON_ERROR_STOP=1 -f distribute-books.sql postgres://catalogue@coordinator.example.org/catalogue
-- with the password in PGPASSWORD or ~/.pgpass.

begin;

create sequence if not exists books_id_seq maxvalue 9007199254740991;
create table if not exists books (
  id bigint primary key default nextval('books_id_seq') check (id between 1 and 9007199254740991),
  title text not null default '',
  author text not null default '',
  year bigint not null default 0 check (year between -9007199254740991 and 9007199254740991)
);

drop function if exists book_log_write cascade; -- and the triggers that call it
drop table if exists book_events;
drop table if exists book_log;
drop table if exists book_log_state;
drop table if exists book_index;
drop table if exists book_index_state;

select create_distributed_table('books', 'id', shard_count := 12, colocate_with := 'none');
select truncate_local_data_after_distributing_table('books'); -- of which the workers have a copy

-- A statement for several shards needs one connection to each worker, which stays open.
do $$
declare setting text;
begin
  foreach setting in array array['max_adaptive_executor_pool_size = 1', 'max_cached_conns_per_worker = 12'] loop
    execute format('alter role %I in database %I set citus.', current_user, current_database()) || setting;
  end loop;
end $$;

commit;

analyze books;
