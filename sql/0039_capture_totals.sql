--! safe: a new table, which triggers keep, whatever version of the service changes captures

-- One row: how many captures there are, and their octets. Kept in the transactions that add and delete captures, so that it is exact
-- after any crash, and read in place of a sum over all of them.
create table capture_totals (
  one boolean primary key default true check (one),
  rows bigint not null check (rows >= 0),
  bytes bigint not null check (bytes >= 0)
) with (fillfactor = 10);

-- Once a statement, at its end: the row is locked after all captures of the statement, and until its commit.
create function count_captures() returns trigger language plpgsql as $$
begin
  update capture_totals t
  set rows = t.rows + changed.sign * changed.rows, bytes = t.bytes + changed.sign * changed.bytes
  from (
    select case tg_op when 'INSERT' then 1 else -1 end sign, count(*) rows, coalesce(sum(c.bytes), 0) bytes from changed_captures c
  ) changed
  where changed.rows > 0;
  return null;
end $$;
create trigger captures_added after insert on captures referencing new table as changed_captures
  for each statement execute function count_captures();
create trigger captures_deleted after delete on captures referencing old table as changed_captures
  for each statement execute function count_captures();
-- The triggers have locked the table against changes until this migration is committed.
insert into capture_totals (rows, bytes) select count(*), coalesce(sum(bytes), 0) from captures;
