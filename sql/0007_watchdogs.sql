--! safe: new tables only

-- Where the alerts of one thing go: a watchdog or a citation watch. Alerts of one webhook are delivered one at a time and
-- in order.
create table webhooks (
  id uuid primary key,
  account_id uuid not null references accounts (id),
  -- As the gate for sources wrote it: https, without a port.
  url text not null check (char_length(url) <= 2048),
  host text not null generated always as (split_part(url, '/', 3)) stored,
  -- The secret is derived from the id and this number, and kept nowhere. So many before it sign beside it, until then.
  secret_version integer not null default 1,
  old_secrets integer not null default 0,
  old_secrets_until timestamptz,
  -- failing: the last alert was given up. disabled: the receiver said that it wants no more.
  state text not null default 'active' check (state in ('active', 'failing', 'disabled')),
  -- Its last attempt failed or took long. Such webhooks share a part of the senders, so they can never keep all of them.
  slow boolean not null default false,
  -- The worker that is sending, so that no two send at once; one that was killed holds it no longer than until.
  sender uuid,
  sending_until timestamptz,
  check ((sender is null) = (sending_until is null)),
  check ((old_secrets = 0) = (old_secrets_until is null))
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
  -- failed: given up. discarded: never sent again, because the webhook was disabled.
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed', 'discarded')),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  -- When it is looked at next. Null for one that waits for another before it, and for one that is settled, unless its
  -- account has asked for it once more.
  next_attempt_at timestamptz,
  settled_at timestamptz,
  unique (webhook_id, event_seq),
  check ((state = 'pending') = (settled_at is null))
);
create index alerts_due on alerts (next_attempt_at) where next_attempt_at is not null;
-- What waits at one webhook, in the order in which it is sent.
create index alerts_waiting on alerts (webhook_id, event_seq) where state = 'pending' or next_attempt_at is not null;
create index alerts_settled on alerts (settled_at) where settled_at is not null;

create table alert_attempts (
  alert_id text not null references alerts (id) on delete cascade,
  attempt integer not null check (attempt > 0),
  -- When it began.
  at timestamptz not null,
  ms integer not null check (ms >= 0),
  -- What the receiver answered, and what kept it from being a delivery.
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
  alert_after integer not null check (alert_after between 1 and 100),
  -- While down, again and again until a heartbeat.
  remind_every_s integer check (remind_every_s between 60 and 2592000),
  -- new, up and late are all watching: which of them it is follows from the other columns and the clock.
  state text not null default 'watching' check (state in ('watching', 'down', 'paused')),
  -- When the clock of the present interval started: the last heartbeat, the making, the resumption.
  started_at timestamptz not null default now(),
  last_beat_at timestamptz,
  beats bigint not null default 0,
  -- What the last heartbeat said.
  note text check (char_length(note) <= 200),
  -- The heartbeat that said "fail", until one says that all is well.
  failed_at timestamptz,
  -- When the outage began that was told last, until its end is told. A pause does not end it.
  down_since timestamptz,
  -- The heartbeat that ended it; the recovery is still to be told.
  revived_at timestamptz,
  reminded_at timestamptz,
  paused_until timestamptz,
  -- When the scanner looks at it next. Never later than there is something to do; often earlier, because a heartbeat leaves
  -- it as it is: so a heartbeat writes no index.
  check_at timestamptz default now(),
  -- Alerts so far; the next is told by whoever raises it by one.
  event_seq bigint not null default 0,
  created_at timestamptz not null default now(),
  unique (account_id, name),
  check (state <> 'down' or down_since is not null),
  check (revived_at is null or down_since is not null or failed_at is not null),
  check (paused_until is null or state = 'paused')
) with (fillfactor = 70);
create index watchdogs_check on watchdogs (check_at) where check_at is not null;

-- How far deadlines have been judged, and when heartbeats could last be taken; one row. What lies between two moments that
-- are far apart was an outage of ours, and nobody is accused for it.
create table watchdog_scans (
  singleton boolean primary key default true check (singleton),
  seen_at timestamptz not null default now(),
  open_at timestamptz not null default now()
);
insert into watchdog_scans default values;
