--! safe: new tables only

create table accounts (
  id uuid primary key,
  handle text not null unique check (handle ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  tier text not null default 'free' check (tier in ('free', 'dev', 'pro')),
  created_at timestamptz not null default now()
);

-- A key that was lost or revoked is gone: the row is deleted, and with it every way back.
create table api_keys (
  id uuid primary key,
  account_id uuid not null references accounts (id),
  -- SHA-256 of the key: the key itself is shown once and kept nowhere.
  key_hash bytea not null unique check (octet_length(key_hash) = 32),
  kind text not null check (kind in ('full', 'read_only', 'heartbeat')),
  label text check (char_length(label) <= 100),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  -- To the hour.
  last_used_at timestamptz
);
create index api_keys_account on api_keys (account_id);

-- Receipts an account asked for on one UTC day. Written only under the lock of the chain's head.
create table receipt_days (
  account_id uuid not null references accounts (id),
  day date not null,
  receipts integer not null check (receipts >= 0),
  primary key (account_id, day)
);

-- Idempotency keys of receipts: the same key and body bring the same receipt.
create table receipt_keys (
  account_id uuid not null references accounts (id),
  key_hash bytea not null check (octet_length(key_hash) = 32),
  body_hash bytea not null check (octet_length(body_hash) = 32),
  serial bigint not null references receipts (serial),
  primary key (account_id, key_hash)
);

-- A lease is what was signed; the columns beside it are for finding and counting. Times are Unix milliseconds, as
-- signed. Written only under the lock of the chain's head, together with the receipt of what was done.
create table leases (
  id text primary key check (id ~ '^ls_[0-9a-f]{32}$'),
  account_id uuid not null references accounts (id),
  -- The canonical JSON that was signed last: at the grant, or at the latest renewal.
  lease text not null,
  sig_ed25519 bytea not null check (octet_length(sig_ed25519) = 64),
  granted_ms bigint not null,
  issued_ms bigint not null check (issued_ms >= granted_ms),
  expires_ms bigint not null check (expires_ms > issued_ms),
  recheck_by_ms bigint not null
    check (recheck_by_ms > issued_ms and recheck_by_ms <= least(expires_ms, issued_ms + 30000)),
  -- The canonical JSON that was signed at the revocation.
  revocation text,
  revocation_sig_ed25519 bytea check (octet_length(revocation_sig_ed25519) = 64),
  revoked_ms bigint,
  -- Receipts of the grant, the latest renewal and the revocation.
  grant_serial bigint not null references receipts (serial),
  renew_serial bigint references receipts (serial),
  revoke_serial bigint references receipts (serial),
  check (num_nonnulls(revocation, revocation_sig_ed25519, revoked_ms, revoke_serial) in (0, 4))
);
-- The tier's limit counts these.
create index leases_unrevoked on leases (account_id, expires_ms) where revoked_ms is null;
create index leases_listed on leases (account_id, granted_ms, id);

create table journal_slots (
  account_id uuid not null references accounts (id),
  slot text not null check (slot ~ '^[A-Za-z0-9._-]{1,128}$'),
  content bytea not null check (octet_length(content) <= 65536),
  sha256 bytea not null check (octet_length(sha256) = 32),
  updated_at timestamptz not null default now(),
  primary key (account_id, slot)
);
-- Ciphertext does not compress.
alter table journal_slots alter column content set storage external;
