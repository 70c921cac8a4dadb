--! safe: columns that may be null or have a constant default, and an index on a small table

-- What operators and accounts do on their pages.

-- Draining: when an operator asked the process to take no new jobs, and when it had none any more. Both null: it takes jobs.
-- A process writes only `drained_at`. What it was asked ends with its row, so a process that starts takes jobs.
alter table processes add column drain_asked_at timestamptz, add column drained_at timestamptz;

-- A session of the dashboard that is signed out stays out: its sign-out in the log of actions is what every request looks for.
create index operator_actions_signed_out on operator_actions (session) where action = 'sign_out';

-- How the last 20 heartbeats came, three bits each, the latest in the lowest: 1 in time, 2 late, 3 after the time at which an
-- outage is alerted, 4 with `fail`, 0 none. A number and no array of times, because every heartbeat writes it. Heartbeats that are
-- written together, and are the same, count once.
alter table watchdogs add column recent_beats bigint not null default 0
  check (recent_beats >= 0 and recent_beats < 1152921504606846976);
