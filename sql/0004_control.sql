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
