--! safe: a new column that may be null, and the same function, in which a request that costs more counts for more

-- How many claims a request of verify-claims has; null for one of verify-source. Its price follows from it. It is not read from the
-- body, because the operators of json refuse a claim with the character U+0000.
alter table verification_requests add column claims smallint
  constraint verification_requests_claims_check check (claims between 1 and 10);

-- Purchases of several claims cost more than those of one. What a payer has unsettled is counted in prices of one claim (30000
-- atomic units), rounded up, as server/verification/admission/in-flight-limits.ts counts a new payment.
create or replace function count_in_flight(payers_named text[], addresses bytea[], domains text[], asking bytea[])
 returns table(kind text, name text, n bigint, unsettled bigint, seconds double precision, most integer)
 language plpgsql
 set enable_seqscan = off
as $$
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
    select 'payer', payer, count(*),
           coalesce(sum(greatest(1, ceil((payment #>> '{requirements,amount}')::numeric / 30000)))
             filter (where state <> 'settled'), 0)::bigint,
           extract(epoch from avg(now() - accepted_at))::float8, null::integer
    from verification_requests
    where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and payer = any(payers_named)
    group by payer
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
