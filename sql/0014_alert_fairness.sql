--! safe: columns that may be null or have constant defaults, and a new table

-- The registrable domain of `host`, by the public suffix list: hosts of one domain count together when sends are limited.
-- Null for webhooks that an older release made: then the host counts by itself.
alter table webhooks add column domain text;
-- An attempt was made at this host. With `slow` it says how much a receiver may hold: tried and not slow has proved itself;
-- untried ones and slow ones share what is left.
alter table webhooks add column tried boolean not null default false;
update webhooks w set tried = true
  where exists (select from alerts a join alert_attempts t on t.alert_id = a.id where a.webhook_id = w.id);

-- Outages that are alerted are limited per watchdog. When the allowance is whole again; null: it is whole. An outage that
-- finds none left is kept in failed_at and revived_at, and alerted when there is one.
alter table watchdogs add column outages_full_at timestamptz;
-- Alerts of `fail` heartbeats wait until then: the account has used up its number of the day.
alter table watchdogs add column fails_wait_until timestamptz;
-- failed_at is a deadline that was missed, and no heartbeat that said "fail".
alter table watchdogs add column silent boolean not null default false;
-- Outages that began since failed_at and are alerted together with that one.
alter table watchdogs add column coalesced integer not null default 0 check (coalesced >= 0);
alter table watchdogs add check (not silent or failed_at is not null);

-- As outages_full_at of watchdogs, for changes of state.
alter table citation_watches add column flips_full_at timestamptz;

-- Alerts of an account on one UTC day. Written only under the lock of the chain's head. Older days are deleted.
create table alert_days (
  day date not null,
  account_id uuid not null references accounts (id),
  -- Made by the account's own acts: `fail` heartbeats, tests, reminders.
  asked integer not null default 0 check (asked >= 0),
  -- Found by the service: missed deadlines, quotes that changed.
  found integer not null default 0 check (found >= 0),
  primary key (day, account_id)
);
