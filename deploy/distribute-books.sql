-- Distributes the books, their search index and its queue over the workers of a Citus cluster, all or none, in 12 shards. Run it
-- on the coordinator, after a service has made the tables there and while none runs, as the role that owns them:
-- psql -v ON_ERROR_STOP=1 -f distribute-books.sql postgres://catalogue@coordinator.example.org/catalogue
-- with the password in PGPASSWORD or ~/.pgpass.

begin;

lock table books, book_index, book_index_queue in access exclusive mode;

-- Citus allows triggers that write to the same server only, which those of the search index do.
set local citus.enable_unsafe_triggers = on;

do $$
declare
  books regclass := 'books';
  path text := current_setting('search_path');
  triggers text[];
  definitions text[];
begin
  perform set_config('search_path', '', true); -- so that the definitions have the names of schemas
  select array_agg(tgname), array_agg(pg_get_triggerdef(oid)) into strict triggers, definitions
  from pg_trigger where tgrelid = books and not tgisinternal;
  perform set_config('search_path', path, true);
  for n in 1 .. array_length(triggers, 1) loop
    execute format('drop trigger %I on books', triggers[n]); -- the index has the books that are copied
  end loop;

  perform create_distributed_table('books', 'id', shard_count := 12, colocate_with := 'none');
  perform create_distributed_table('book_index', 'id', colocate_with := 'books');
  perform create_distributed_table('book_index_queue', 'first', colocate_with := 'books');
  alter table book_index_queue replica identity full; -- without a key, its shards could not move beside writers
  perform truncate_local_data_after_distributing_table(name::regclass) -- of which Citus has made copies
  from unnest(array['books', 'book_index', 'book_index_queue']) as name;

  for n in 1 .. array_length(definitions, 1) loop
    execute definitions[n];
  end loop;

  -- A statement for several shards needs one connection to each worker.
  execute format('alter role %I in database %I set citus.max_adaptive_executor_pool_size = 1',
    current_user, current_database());
end $$;

commit;

analyze books, book_index;
