--! safe: a column with a constant default and new tables

-- What the operator gave, whatever is paid. The tier of an account is the better of this one and that of its subscription.
alter table accounts add column granted_tier text not null default 'free'
  check (granted_tier in ('free', 'dev', 'pro'));
update accounts set granted_tier = tier where tier <> 'free';

-- A customer at the provider of subscriptions stands for one account. An account whose customer was deleted there is given
-- another one.
create table billing_customers (
  customer_id text primary key check (char_length(customer_id) <= 255),
  account_id uuid not null references accounts (id),
  provider text not null check (provider in ('stripe', 'simulation')),
  created_at timestamptz not null default now(),
  -- When it was found to be deleted at the provider.
  gone_at timestamptz,
  -- Every look at the provider takes the next number before it begins, and what it saw is written only if no look with a
  -- later number has been written: answers may overtake each other.
  looks bigint not null default 0,
  seen_look bigint not null default 0 check (seen_look <= looks)
);
create index billing_customers_account on billing_customers (account_id, created_at);

-- Subscriptions as they were at the last look.
create table billing_subscriptions (
  subscription_id text primary key check (char_length(subscription_id) <= 255),
  customer_id text not null references billing_customers (customer_id),
  -- In the provider's words: active, trialing, past_due, ... and words it will invent.
  status text not null check (char_length(status) <= 64),
  -- Of its price; free: a price that is none of ours.
  tier text not null check (tier in ('free', 'dev', 'pro')),
  -- What became of the money of its latest invoice.
  payment text not null check (payment in ('kept', 'refunded', 'disputed')),
  current_period_end timestamptz,
  cancel_at_period_end boolean not null,
  -- When it was first seen past due; the grace period counts from here.
  past_due_since timestamptz,
  check ((status = 'past_due') = (past_due_since is not null))
);
create index billing_subscriptions_customer on billing_subscriptions (customer_id);

-- Events that have been worked on: each is stored in the transaction that writes what was seen because of it.
create table billing_events (
  event_id text primary key check (char_length(event_id) <= 255),
  type text not null,
  customer_id text not null references billing_customers (customer_id),
  created_at timestamptz not null,
  received_at timestamptz not null default now()
);
create index billing_events_received on billing_events (received_at);

-- The one checkout an account may have open.
create table billing_checkouts (
  account_id uuid primary key references accounts (id),
  provider text check (provider in ('stripe', 'simulation')),
  -- Part of every idempotency key, so that a repeat is a repeat and a new beginning is a new one.
  attempt bigint not null default 1,
  tier text check (tier in ('dev', 'pro')),
  -- Null while it is being made.
  checkout_id text,
  expires_at timestamptz,
  check ((tier is null) = (expires_at is null) and (tier is null) = (provider is null)),
  check (tier is not null or checkout_id is null)
);

-- What stands for the provider where subscriptions are simulated: offline mode without Stripe.
create table simulated_checkouts (
  id uuid primary key,
  -- SHA-256 of the unguessable part of its address.
  token_hash bytea not null unique check (octet_length(token_hash) = 32),
  customer_id text not null references billing_customers (customer_id),
  kind text not null check (kind in ('subscribe', 'change', 'manage')),
  tier text check (tier in ('dev', 'pro')),
  state text not null default 'open' check (state in ('open', 'completed', 'expired')),
  expires_at timestamptz not null,
  check ((kind = 'manage') = (tier is null))
);
create table simulated_subscriptions (
  id text primary key,
  customer_id text not null references billing_customers (customer_id),
  tier text not null check (tier in ('dev', 'pro')),
  status text not null default 'active' check (status in ('active', 'canceled')),
  started_at timestamptz not null
);
-- One at a time.
create unique index simulated_subscriptions_active on simulated_subscriptions (customer_id) where status = 'active';
