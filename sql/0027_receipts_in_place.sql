--! safe: what is dropped is replaced; on a large table, make both indexes concurrently beforehand. While processes of the release before run, their search by digest (GET /receipts) reads the whole table

-- What a receipt writes to stays in one place, however long the chain is. Indexes by digest alone take each new receipt to another page,
-- so that a long chain reads and logs three whole pages for each. Within 262,144 serials an index by digest is small. A search looks
-- into the part of each such range; the number is in server/receipts/growth.ts too.
create index if not exists receipts_found_by_hash on receipts ((serial >> 18), receipt_hash);
create index if not exists receipts_found_by_subject on receipts ((serial >> 18), subject_sha256, serial);

-- The fork guard: a receipt follows the one of the serial before, whichever process writes it. As serials are unique, no two follow the same
-- one, and there is no gap.
create function refuse_broken_link() returns trigger language plpgsql as $$
begin
  if exists (
    select from added a
    where a.prev_hash is distinct from case when a.serial = 1 then decode(repeat('00', 32), 'hex')
      else (select r.receipt_hash from receipts r where r.serial = a.serial - 1) end
  ) then
    raise exception 'a receipt does not follow the one before it' using errcode = 'restrict_violation';
  end if;
  return null;
end $$;
create trigger receipts_linked after insert on receipts referencing new table as added
  for each statement execute function refuse_broken_link();

-- The hash of a receipt covers its serial, so unique serials have unique hashes.
alter table receipts drop constraint receipts_prev_hash_key, drop constraint receipts_receipt_hash_key;
drop index receipts_subject;
