--! safe: new tables only

-- Pages seen a moment ago, for other claims on them. Nothing here is needed to be right: an entry that is gone is fetched
-- again, so the table is not logged.
create unlogged table observations (
  -- SHA-256 of the canonical URL and the procedure.
  key bytea primary key check (octet_length(key) = 32),
  value bytea,
  checked_at timestamptz,
  -- One worker fetches while the others wait for what it brings.
  fetcher uuid,
  fetching_until timestamptz
);
alter table observations alter column value set storage external;
create index observations_checked on observations (checked_at);

-- Manners: when the next request to an origin may go out, and how many are under way, for all workers together.
create unlogged table origins (
  origin text primary key,
  -- Set by spacing and by the origin's own Retry-After.
  next_at timestamptz not null default now()
);
create unlogged table origin_visits (
  id uuid primary key,
  origin text not null,
  -- A worker that was killed leaves its visit behind; it counts no longer than this.
  until timestamptz not null
);
create index origin_visits_origin on origin_visits (origin);
