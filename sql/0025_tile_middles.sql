--! safe: a new table only

-- The hashes half way up each full tile of the tree: the roots of its 16 complete subtrees of 16. With such a row, a proof from anywhere
-- in the chain reads 16 receipts of a tile and not all 256. A worker makes the rows from the receipts, in order, some time after
-- them. A tile without a row is read from its receipts, so rows may be deleted at any time.
create table tile_middles (
  level smallint not null check (level between 0 and 3),
  index bigint not null check (index >= 0),
  hashes bytea not null check (octet_length(hashes) = 512),
  primary key (level, index)
);
create trigger tile_middles_constant before update on tile_middles
  for each row execute function refuse_change();
