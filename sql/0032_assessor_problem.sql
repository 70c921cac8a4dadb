--! safe: a new column that may be null

-- Why the worker's assessor takes no work, in words for the operator: the model refuses the key, cannot be reached, or its answers
-- cannot be read. Null: nothing is wrong. It holds no secret.
alter table worker_beats add column assessor_problem text;
