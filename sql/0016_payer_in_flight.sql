--! safe: a new column, filled for what is in flight; a very large table holds writes up while the index is built

-- The payer of the payment in force, as in `payment`. An index on the json itself parses it for each version of a row, twice.
-- What a process of an earlier release accepts has none, and is not counted for its payer.
alter table verification_requests add column payer text;
update verification_requests set payer = payment #>> '{identity,payer}'
  where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired');
drop index verification_requests_payer;
create index verification_requests_payer on verification_requests (payer)
  where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and payer is not null;

-- As in 0011, by the column.
create or replace function count_in_flight(payers_named text[], addresses bytea[], domains text[], asking bytea[])
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
    select 'payer', payer, count(*), count(*) filter (where state <> 'settled'),
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
