--! safe: an index on a table of small rows

-- The status counts them; there are few.
create index accounts_disabled on accounts (id) where disabled_at is not null;
