--! safe: new columns that may be null

-- A worker holds an advisory lock on a connection of its own, whose end says at once that the worker died. `lock_key` is the second
-- key of that lock; null: it has none, and only its beat says whether it lives. `lost_at`: another worker found the lock free.
alter table worker_beats add column lock_key integer;
alter table worker_beats add column lost_at timestamptz;
-- The beginning of the ids of all that the worker holds: attempts, visits to origins, turns to fetch a page.
alter table worker_beats add column worker text;
