--! safe: new columns, a new table, and indexes

-- What the limits on work in flight count (PUBLIC_LIMITS in server/control/tiers.ts). The payer stands in `payment`.
alter table verification_requests
  -- Keyed digest of the caller's address, which is never stored in clear: of the call that made the quote, then of the call
  -- that paid. Pruning removes it.
  add column address_key bytea check (octet_length(address_key) = 16),
  -- Registrable domain of the source, from the time a payment is bound.
  add column domain text,
  -- Priority of the request's job; lower ones go first.
  add column priority smallint not null default 0 check (priority >= 0),
  -- When the payment in force was bound.
  add column accepted_at timestamptz;
-- Requests in flight. What is indexed is not null, and the states that are not in flight are named: so a statement that asks
-- by one of the three finds its own index fit and no other of this table.
create index verification_requests_payer on verification_requests ((payment #>> '{identity,payer}'))
  where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and payment #>> '{identity,payer}' is not null;
create index verification_requests_address on verification_requests (address_key)
  where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and address_key is not null;
create index verification_requests_domain on verification_requests (domain)
  where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and domain is not null;
create index verification_requests_open_quotes on verification_requests (address_key, quote_expires_at)
  where state = 'quoted' and address_key is not null;

-- What pruning looks for, each in the order in which it becomes due.
drop index verification_requests_prunable;
create index verification_requests_prunable on verification_requests (changed_at)
  where state in ('completed', 'failed') and body is not null;
create index verification_requests_quotes on verification_requests (quote_expires_at)
  where state in ('quoted', 'unpaid') and body is not null;
-- Quotes that no payment was ever bound to: they are deleted an hour after their expiry.
create index verification_requests_never_paid on verification_requests (quote_expires_at)
  where state = 'expired' and payment is null and settlement_intent is null;
-- Deleting a request asks for its entries.
create index payment_ledger_request on payment_ledger (request_id);

-- How much each payer may have in flight, written by the statements that settle a request or end it uncharged.
create table payers (
  -- As `payer` in a payment's identity.
  payer text primary key,
  -- Requests that settled.
  settled bigint not null default 0 check (settled >= 0),
  max_in_flight integer not null check (max_in_flight between 1 and 256),
  changed_at timestamptz not null default now()
);
-- Payers that never settled anything are forgotten after a quiet day.
create index payers_prunable on payers (changed_at) where settled = 0;

-- Locks those whom a group of calls belongs to until the transaction ends, then counts what they have: one round trip, since
-- admission is called for every purchase. The locks are taken in one order, so that no two transactions wait for each other
-- in a ring; what is counted is read after they are held. `asking`: addresses that ask for a quote.
-- Without sequential scans: a plan made while a table was small is kept for as long as its connection.
create function count_in_flight(payers_named text[], addresses bytea[], domains text[], asking bytea[])
returns table (kind text, name text, n bigint, unsettled bigint, seconds float8, most integer)
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(id) from (
    select distinct hashtextextended(named, 8402) id from (
      select 'payer ' || p named from unnest(payers_named) p
      union all select 'address ' || encode(a, 'hex') from unnest(addresses || asking) a
      union all select 'domain ' || d from unnest(domains) d
    ) everyone order by id
  ) in_order;
  return query
    select 'payer', payment #>> '{identity,payer}', count(*), count(*) filter (where state <> 'settled'),
           extract(epoch from avg(now() - accepted_at))::float8, null::integer
    from verification_requests
    where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired')
      and payment #>> '{identity,payer}' = any(payers_named)
    group by 2
    union all
    select 'address', encode(address_key, 'hex'), count(*), 0, extract(epoch from avg(now() - accepted_at))::float8, null
    from verification_requests
    where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and address_key = any(addresses)
    group by address_key
    union all
    select 'domain', domain, count(*), 0, extract(epoch from avg(now() - accepted_at))::float8, null
    from verification_requests
    where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and domain = any(domains)
    group by domain
    union all
    select 'open_quotes', encode(address_key, 'hex'), count(*), 0,
           extract(epoch from min(quote_expires_at) - now())::float8, null
    from verification_requests
    where state = 'quoted' and address_key = any(asking) and quote_expires_at > now()
    group by address_key
    union all
    select 'standing', payer, settled, 0, null, max_in_flight from payers where payer = any(payers_named);
end $$;
