--! safe: first migration

-- Every key that ever signed, by purpose; all are derived from one seed, by use and generation. A key is never deleted: a
-- receipt key is good for its own range of serials for ever.
create table signing_keys (
  key_id integer generated always as identity (start with 1) primary key,
  use text not null check (use in ('receipt', 'lease', 'webhook', 'checkpoint')),
  generation integer not null check (generation >= 1),
  pubkey bytea not null unique check (octet_length(pubkey) = 32),
  status text not null default 'active' check (status in ('active', 'retired', 'compromised')),
  -- The serials that a receipt key may sign; null for other uses, and the last one while it is active.
  first_serial bigint check (first_serial >= 1),
  last_serial bigint check (last_serial >= first_serial),
  -- The receipt that introduced it, signed by the receipt key in force then. Nothing introduces the first of its use.
  introduced_by bigint,
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  unique (use, generation),
  check ((generation = 1) = (introduced_by is null)),
  check ((use = 'receipt') = (first_serial is not null)),
  check ((use = 'receipt' and status <> 'active') = (last_serial is not null)),
  check ((status = 'active') = (retired_at is null))
);
create unique index signing_keys_one_active on signing_keys (use) where status = 'active';

-- The chain. UNIQUE (prev_hash) is the fork guard: two receipts cannot follow the same one, whoever writes them.
create table receipts (
  serial bigint primary key check (serial >= 1),
  ts_ms bigint not null check (ts_ms >= 0),
  subject_sha256 bytea not null check (octet_length(subject_sha256) = 32),
  label text check (char_length(label) <= 200),
  requested_by text not null check (char_length(requested_by) between 1 and 128),
  key_id integer not null references signing_keys (key_id),
  prev_hash bytea not null unique check (octet_length(prev_hash) = 32),
  receipt_hash bytea not null unique check (octet_length(receipt_hash) = 32),
  sig_ed25519 bytea not null check (octet_length(sig_ed25519) = 64)
);

alter table signing_keys add foreign key (introduced_by) references receipts (serial);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger receipts_append_only before update or delete on receipts for each row execute function refuse_change();
create trigger receipts_no_truncate before truncate on receipts execute function refuse_change();
create trigger signing_keys_kept before delete on signing_keys for each row execute function refuse_change();

-- A key ends once and stays what it was.
create function refuse_key_change() returns trigger language plpgsql as $$
begin
  if (new.key_id, new.use, new.generation, new.pubkey, new.first_serial, new.introduced_by, new.created_at)
     is distinct from (old.key_id, old.use, old.generation, old.pubkey, old.first_serial, old.introduced_by, old.created_at)
     or (old.status <> 'active' and (new.status = 'active' or new.last_serial is distinct from old.last_serial)) then
    raise exception 'a signing key cannot be changed, only ended' using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger signing_keys_constant before update on signing_keys for each row execute function refuse_key_change();

-- A batch signed with a key that is not in force for its serials does not commit, whatever its process believed.
create function refuse_key_out_of_turn() returns trigger language plpgsql as $$
begin
  if exists (
    select from added a left join signing_keys k on k.key_id = a.key_id and k.use = 'receipt'
      and a.serial >= k.first_serial and a.serial <= coalesce(k.last_serial, a.serial)
    where k.key_id is null
  ) then
    raise exception 'a receipt is signed with a key that is not in force' using errcode = 'restrict_violation';
  end if;
  return null;
end $$;
create trigger receipts_key_in_force after insert on receipts referencing new table as added
  for each statement execute function refuse_key_out_of_turn();

-- One row: the end of the chain and the root of the tree over it. Locked for the length of one append batch. The tree
-- covers exactly `serial` receipts, always: a head with an uncovered tail could show two histories.
create table chain_head (
  one boolean primary key default true check (one),
  serial bigint not null check (serial >= 0),
  receipt_hash bytea not null check (octet_length(receipt_hash) = 32),
  ts_ms bigint not null check (ts_ms >= 0),
  -- Hashes of the complete subtrees that make up the tree, largest first; the bits of `serial` say their sizes.
  frontier bytea not null check (octet_length(frontier) = 32 * length(replace(serial::bit(63)::text, '0', ''))),
  -- C2SP checkpoint, signed; empty before the first receipt.
  checkpoint text not null,
  -- Counts rotations. A process that holds the keys of another count loads them anew before it signs.
  key_changes integer not null default 0
) with (fillfactor = 10);
insert into chain_head (serial, receipt_hash, ts_ms, frontier, checkpoint)
values (0, decode(repeat('00', 32), 'hex'), 0, '', '');

-- The tree above the receipts, one row for each complete subtree of 256, 65,536, ... of them. The levels between are
-- computed: the leaves are the receipts themselves.
create table tree_nodes (
  level smallint not null check (level in (8, 16, 24, 32)),
  index bigint not null check (index >= 0),
  hash bytea not null check (octet_length(hash) = 32),
  primary key (level, index)
);
create trigger tree_nodes_append_only before update or delete on tree_nodes
  for each row execute function refuse_change();
create trigger tree_nodes_no_truncate before truncate on tree_nodes execute function refuse_change();

-- Only with witnesses: the checkpoint that is published, with the cosignatures it was given. Its size never goes back.
create table witnessed_checkpoint (
  one boolean primary key default true check (one),
  tree_size bigint not null check (tree_size >= 1),
  checkpoint text not null,
  -- When a process last took its turn to ask, and when what stands here was put here.
  taken_at timestamptz not null,
  published_at timestamptz not null
);

-- One row per Idempotency-Key, from the first 402 until long after the result is gone.
-- The state column is the recovery point: a worker carries on from it, whatever happened to the one before.
create table verification_requests (
  id uuid primary key,
  -- SHA-256 of the Idempotency-Key: the key alone fetches a paid result, so it is not kept in clear.
  key_hash bytea not null unique check (octet_length(key_hash) = 32),
  -- SHA-256 of the canonical request body.
  body_hash bytea not null check (octet_length(body_hash) = 32),
  state text not null check (state in ('quoted', 'accepted', 'observed', 'assessed', 'settling', 'settled',
                                       'completed', 'unpaid', 'failed', 'expired')),
  body json,
  quote_expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  -- The worker that owns the request right now; a stage commits only under its own token, so one that was wrongly
  -- thought dead and comes back late changes nothing.
  attempt uuid,
  payment json,
  -- The authorization as it came, sealed (AES-256-GCM); gone as soon as it can no longer be needed.
  payment_sealed bytea,
  observation json,
  assessment json,
  settlement json,
  error json,
  result bytea,
  settlement_header text,
  check (state in ('quoted', 'failed', 'expired', 'unpaid') or payment is not null),
  check (state not in ('accepted', 'observed', 'assessed', 'settling') or payment_sealed is not null),
  check (state not in ('quoted', 'settled', 'completed', 'unpaid', 'failed', 'expired') or payment_sealed is null),
  check (state not in ('observed', 'assessed', 'settling', 'settled') or observation is not null),
  check (state not in ('assessed', 'settling', 'settled') or assessment is not null),
  check (state <> 'settled' or settlement is not null),
  check (state in ('observed', 'assessed', 'settling', 'settled', 'unpaid') or observation is null),
  check (state in ('assessed', 'settling', 'settled', 'unpaid') or assessment is null),
  check (state in ('settled', 'completed') or settlement is null),
  check ((state = 'completed') = (result is not null)),
  check ((state = 'failed') = (error is not null)),
  check (state in ('expired', 'failed') or body is not null)
);
-- Page text does not get smaller by pglz at a price worth paying for a day's retention.
alter table verification_requests alter column result set storage external;
alter table verification_requests alter column observation set storage external;
create index verification_requests_prunable on verification_requests (changed_at)
  where state in ('quoted', 'completed', 'unpaid', 'failed') and body is not null;
create index verification_requests_working on verification_requests (changed_at)
  where state in ('accepted', 'observed', 'assessed', 'settling', 'settled');

-- A payment authorization serves one request. The row goes when the request fails or provably was not paid.
create table payment_claims (
  network text not null,
  asset text not null,
  payer text not null,
  nonce text not null,
  request_id uuid not null unique references verification_requests (id),
  claimed_at timestamptz not null default now(),
  primary key (network, asset, payer, nonce)
);

-- Sign of life of each graphile-worker pool. Jobs locked by a pool without a fresh beat are unlocked by the others.
create table worker_beats (
  pool_id text primary key,
  -- What this worker's results will name as their methodology_version.
  methodology text not null,
  beat_at timestamptz not null default now(),
  booted_at timestamptz not null default now()
);
