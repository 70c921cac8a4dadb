--! safe: a small table becomes logged, a column without a default, and new tables

-- Figures of all processes: the metrics of each, the sums of those that ended, and what each minute and each day was like.

-- The last metrics that the process published: JSON, compressed. Logged, because counters must not go back in a crash.
alter table processes set logged;
alter table processes add column figures bytea;
-- Every row is replaced every few seconds.
alter table processes set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
  toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 500);

-- The sums of what ended processes counted, in one row. The transaction that deletes a process locks it.
create table ended_figures (
  single boolean primary key default true check (single),
  figures bytea
);
insert into ended_figures default values;

-- One row a minute, written by one process. Kept for a week.
create table minute_figures (
  minute timestamptz primary key check (minute = date_trunc('minute', minute)),
  -- Whether every probe of readiness in this minute found its web process ready, and there was one.
  well boolean not null,
  -- Of jobs that were due at the end of the minute.
  queue_depth integer not null check (queue_depth >= 0),
  oldest_seconds real not null check (oldest_seconds >= 0),
  -- Counters of all processes since the beginning, at the end of the minute; a reader takes differences.
  counters jsonb not null,
  -- Entries of the ledger that were made in this minute; null until a minute later, when all of them are committed.
  payments jsonb
);

-- How many minutes of a day (UTC) were well. Kept for 90 days.
create table day_figures (
  day date primary key,
  first_minute timestamptz not null,
  recorded integer not null check (recorded between 0 and 1440),
  well integer not null check (well between 0 and recorded)
);
