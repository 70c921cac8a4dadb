--! safe: a new table, a column without a default, and an index on the ledger; on a very large ledger, make it concurrently beforehand

-- What operators see and do: the processes that run with their public settings, disabled accounts, and the ledger by time.

-- Processes of the service. Each writes its row every few seconds; one that stops deletes it, and old rows are swept.
create unlogged table processes (
  id uuid primary key,
  kind text not null check (kind in ('web', 'worker', 'all')),
  host text not null,
  pid integer not null,
  -- Public settings by the name of their variable. No secret is among them.
  settings json not null,
  started_at timestamptz not null default now(),
  beat_at timestamptz not null default now()
);

-- A disabled account's API keys are refused.
alter table accounts add column disabled_at timestamptz;

create index payment_ledger_entered on payment_ledger (entered_at);
