--! safe: a new table, and an index; on a large table of slots, make the index concurrently beforehand

-- How many attempts to sign in to the dashboard were refused on a UTC day. They are counted, because anyone can make them, and what is
-- stored of actions is never deleted.
create table operator_refusals (
  day date primary key,
  refused bigint not null check (refused > 0),
  last_at timestamptz not null
);

-- What pruning looks for: slots of free accounts that no one uses.
create index journal_slots_updated on journal_slots (updated_at);
