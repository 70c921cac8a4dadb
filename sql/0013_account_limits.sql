--! safe: a column with a constant default, a new table, and indexes on small tables; on very large ones, make them concurrently beforehand

-- Grants, renewals and revocations of leases on one UTC day: each makes a receipt. Written only under the lock of the
-- chain's head, like the count beside it.
alter table receipt_days alter column receipts set default 0;
alter table receipt_days add column lease_acts integer not null default 0 check (lease_acts >= 0);
-- Days that are over are deleted.
create index if not exists receipt_days_day on receipt_days (day);

-- Accounts made on one UTC day from one address: an IPv4 address, or an IPv6 network of 64 bits. Only a keyed hash of it is
-- here, and only until the day is over.
create table registration_days (
  day date not null,
  address_hash bytea not null check (octet_length(address_hash) = 32),
  registrations integer not null check (registrations > 0),
  primary key (day, address_hash)
);

-- Keys that have ended are deleted.
create index if not exists api_keys_expires on api_keys (expires_at) where expires_at is not null;
-- Accounts of which no key was ever used are deleted after a while; their keys are found here.
create index if not exists api_keys_unused on api_keys (created_at) where last_used_at is null;

-- Pages that are over are deleted.
create index if not exists simulated_checkouts_expires on simulated_checkouts (expires_at);
