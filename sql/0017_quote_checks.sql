--! safe: two new tables only

-- Quotes that an account asked to have looked for in a page. One row answers all calls with the same body until it expires.
create table quote_checks (
  id uuid primary key,
  account_id uuid not null references accounts (id),
  -- SHA-256 of the canonical body.
  body_hash bytea not null check (octet_length(body_hash) = 32),
  body json not null,
  -- Registrable domain of the page.
  domain text not null,
  state text not null default 'pending' check (state in ('pending', 'completed', 'failed')),
  -- The day (UTC) that the page is counted on; null where it is not counted.
  counted_on date,
  -- The page's host was asked for it.
  begun boolean not null default false,
  -- The worker's attempt that may commit.
  attempt uuid,
  -- What the check waits for, as in verification_requests.
  waiting json,
  -- Priority of its job.
  priority smallint not null check (priority >= 0),
  -- The answer as the bytes that are served.
  result bytea,
  error json,
  created_at timestamptz not null default now(),
  -- When it became pending, completed or failed.
  changed_at timestamptz not null default now(),
  expires_at timestamptz,
  unique (account_id, body_hash),
  check ((state = 'completed') = (result is not null)),
  check ((state = 'failed') = (error is not null)),
  check ((state = 'pending') = (expires_at is null))
);
alter table quote_checks alter column result set storage external;
create index quote_checks_pending on quote_checks (account_id) where state = 'pending';
create index quote_checks_pending_domain on quote_checks (domain) where state = 'pending';
create index quote_checks_expiry on quote_checks (expires_at);

-- Pages that the quote checks of an account have begun, by day (UTC).
create table quote_check_days (
  account_id uuid not null references accounts (id),
  day date not null,
  pages integer not null check (pages >= 0),
  primary key (account_id, day)
);
create index quote_check_days_day on quote_check_days (day);
