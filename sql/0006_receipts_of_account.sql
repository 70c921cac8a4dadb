--! safe: an index on a table of small rows; on a very large one, make it concurrently beforehand

-- An account lists its own receipts, newest first.
create index if not exists receipts_requested on receipts (requested_by, serial);
