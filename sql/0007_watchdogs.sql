--! safe: new tables only

-- Where the alerts of one thing go: a watchdog or a citation watch. Alerts of one webhook are delivered one at a time and
-- in order.
create table webhooks (
  id uuid primary key,
  account_id uuid not null references accounts (id),
  url text not null check (char_length(url) <= 2048),
  -- The secret is derived from the id and this number, and kept nowhere.
  secret_version integer not null default 1,
  -- failing: the last alert was given up. disabled: the receiver said that it wants no more.
  state text not null default 'active' check (state in ('active', 'failing', 'disabled')),
  -- The worker that is sending, so that no two send at once; one that was killed holds it no longer than until.
  sender uuid,
  sending_until timestamptz,
  check ((sender is null) = (sending_until is null))
);

-- The outbox. A row is written in the transaction of what it tells, together with its receipt.
create table alerts (
  -- webhook-id: the same at every attempt.
  id text primary key check (id ~ '^wh_[0-9a-f]{32}$'),
  webhook_id uuid not null references webhooks (id) on delete cascade,
  -- Ascends by one from 1.
  event_seq bigint not null check (event_seq > 0),
  type text not null,
  -- The bytes that are sent.
  body text not null,
  serial bigint not null references receipts (serial),
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed', 'discarded')),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  next_attempt_at timestamptz,
  settled_at timestamptz,
  unique (webhook_id, event_seq),
  check ((state = 'pending') = (next_attempt_at is not null)),
  check ((state = 'pending') = (settled_at is null))
);
create index alerts_pending on alerts (next_attempt_at) where state = 'pending';

create table alert_attempts (
  alert_id text not null references alerts (id) on delete cascade,
  attempt integer not null check (attempt > 0),
  at timestamptz not null default now(),
  ms integer not null,
  -- What the receiver answered, or why there was no answer.
  status integer,
  error text,
  primary key (alert_id, attempt)
);

create table watchdogs (
  id uuid primary key,
  account_id uuid not null references accounts (id),
  name text not null check (name ~ '^[A-Za-z0-9._-]{1,128}$'),
  webhook_id uuid not null unique references webhooks (id),
  interval_s integer not null check (interval_s between 10 and 2592000),
  grace_s integer not null check (grace_s between 0 and 2592000),
  -- Missed intervals in a row before the alert.
  alert_after integer not null default 1 check (alert_after between 1 and 100),
  -- While down, again and again until a heartbeat.
  remind_every_s integer check (remind_every_s between 60 and 2592000),
  state text not null default 'new' check (state in ('new', 'up', 'late', 'down', 'paused')),
  -- When the clock of the present interval started: the last heartbeat, the making, the resumption.
  started_at timestamptz not null default now(),
  last_beat_at timestamptz,
  beats bigint not null default 0,
  -- When the scanner looks at it next. Never later than what is due; it may be earlier, because a heartbeat does not touch
  -- it: a heartbeat then writes no index.
  check_at timestamptz,
  down_since timestamptz,
  paused_until timestamptz,
  -- Alerts so far; the next flip is made by whoever raises it by one.
  event_seq bigint not null default 0,
  created_at timestamptz not null default now(),
  unique (account_id, name)
) with (fillfactor = 70);
create index watchdogs_check on watchdogs (check_at) where check_at is not null;

-- When the scanner last looked, one row: a gap was ours, and nobody is accused for it.
create table watchdog_scans (
  singleton boolean primary key default true check (singleton),
  seen_at timestamptz not null default now()
);
insert into watchdog_scans default values;
