--! safe: a new table, and a new column that may be null and that processes of the previous version leave as it is

-- What a page was made of when it was read: every hop as it crossed the connection, and who answered. One row for each observation, which
-- several requests may share. It is deleted with the last of them.
create table captures (
  id uuid primary key,
  created_at timestamptz not null default now(),
  -- Hops and connections, compressed and encrypted.
  sealed bytea not null,
  -- Octets of `sealed`, so that their sum can be read from an index.
  bytes integer not null check (bytes > 0),
  -- The exact bytes that the receipt of this serial attests; null until a request that uses the capture is completed.
  manifest bytea,
  serial bigint,
  check ((manifest is null) = (serial is null))
);
-- Encrypted bytes do not get smaller.
alter table captures alter column sealed set storage external;
create index captures_by_age on captures (created_at) include (bytes);

-- The capture of the observation that a request has, or had: kept after the observation until the result is pruned. It may name a row that
-- is gone, where captures are kept for a shorter time.
alter table verification_requests add column capture_id uuid;
create index verification_requests_by_capture on verification_requests (capture_id) where capture_id is not null;
