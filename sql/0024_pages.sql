--! safe: columns that may be null

-- What operators and accounts do on their pages.

-- Draining: when an operator asked the process to take no new jobs, and when it had none any more. Both null: it takes jobs.
-- A process writes only `drained_at`. What it was asked ends with its row, so a process that starts takes jobs.
alter table processes add column drain_asked_at timestamptz, add column drained_at timestamptz;
