--! safe: one new table only

-- Free looks at a page: one row for each pair of page and claim that an address asked for on a day (UTC). It answers that pair
-- until it expires, and then only counts for the day.
create table looks (
  id uuid primary key,
  -- Keyed digests of the caller's address and of its network. The looks at the service's samples, which all callers share, have zeros.
  address_key bytea not null check (octet_length(address_key) = 16),
  network_key bytea not null check (octet_length(network_key) = 16),
  day date not null,
  -- SHA-256 of the canonical body.
  pair_hash bytea not null check (octet_length(pair_hash) = 32),
  -- Null once the look has expired.
  body json,
  -- Name of the sample whose text is read in place of the page; null for a page.
  sample text,
  -- Registrable domain of the page.
  domain text not null,
  state text not null default 'pending' check (state in ('pending', 'completed', 'failed', 'expired')),
  stage text not null default 'waiting' check (stage in ('waiting', 'reading', 'assessing')),
  -- How often this pair was begun on this day.
  runs smallint not null default 1 check (runs > 0),
  -- The worker's attempt that may commit.
  attempt uuid,
  -- What the look waits for, as in verification_requests.
  waiting json,
  -- Priority of its job.
  priority smallint not null check (priority >= 0),
  -- The answer as the bytes that are served.
  result bytea,
  error json,
  created_at timestamptz not null default now(),
  -- When it became pending, completed or failed.
  changed_at timestamptz not null default now(),
  unique (address_key, day, pair_hash),
  check ((state = 'completed') = (result is not null)),
  check ((state = 'failed') = (error is not null)),
  check ((state = 'expired') = (body is null))
);
create index looks_day on looks (day);
create index looks_network on looks (network_key, day);
create index looks_ended on looks (changed_at) where state in ('completed', 'failed');
create index looks_pending on looks (domain) where state = 'pending';
