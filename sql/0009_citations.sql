--! safe: a new table only

-- Quotes of completed verifications that are looked at again. What is needed of the verification is copied here: its result
-- is deleted after its retention.
create table citation_watches (
  id uuid primary key,
  account_id uuid not null references accounts (id),
  name text not null check (name ~ '^[A-Za-z0-9._-]{1,128}$'),
  webhook_id uuid not null unique references webhooks (id),
  request_id uuid not null,
  evidence_id text not null check (evidence_id ~ '^e[1-6]$'),
  source_url text not null check (char_length(source_url) <= 2048),
  quote text not null check (char_length(quote) between 1 and 1000),
  every_hours integer not null check (every_hours between 1 and 720),
  state text not null default 'present' check (state in ('present', 'changed', 'vanished')),
  -- The observation in which the quote stood last: digests, offsets, time.
  last_seen jsonb not null,
  -- What the latest check came to; null before the first.
  last_check jsonb,
  -- Checks in a row in which the page could not be read.
  failures integer not null default 0 check (failures >= 0),
  check_at timestamptz not null,
  -- Alerts so far; the next flip is made by whoever raises it by one.
  event_seq bigint not null default 0,
  created_at timestamptz not null default now(),
  unique (account_id, name)
);
create index citation_watches_check on citation_watches (check_at);
