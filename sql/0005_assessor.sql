--! safe: a new column that may be null

-- Set while the worker's assessor waits for a model that does not answer. While that is so of all workers, nobody is asked
-- to pay.
alter table worker_beats add column assessor_paused_until timestamptz;
