--! safe: two new tables, which earlier processes neither read nor write

-- Replies of time-stamp authorities (RFC 3161) about checkpoints. One row for each head and authority: whoever stores first wins.
create table timestamps (
  tree_size bigint not null check (tree_size >= 1),
  -- The address at which the authority was asked.
  url text not null,
  -- The checkpoint as it was served then: the reply is about the digest of these bytes.
  note text not null,
  -- The whole reply in DER, which was verified before it was stored.
  reply bytea not null check (octet_length(reply) <= 65536),
  -- What the authority has signed: its time, and its number of the reply in hex.
  generated_at timestamptz not null,
  serial text not null,
  -- The name in its certificate.
  authority text not null,
  primary key (tree_size, url)
);
create index timestamps_by_age on timestamps (url, generated_at);

-- When each authority was asked last. The row is written before the question is sent, so no two processes ask at once.
create table timestamp_authorities (
  url text primary key,
  asked_at timestamptz not null,
  interval_seconds integer not null check (interval_seconds > 0),
  -- Questions in a row without a reply that could be stored, and the cause of the last one.
  failures integer not null default 0 check (failures >= 0),
  problem text,
  check ((failures = 0) = (problem is null))
);
