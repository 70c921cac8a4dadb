--! safe: new columns with defaults of small unlogged tables, and a function with more parameters, each with a default

-- For whom a turn at an origin is, or is waited for (see workers/retrieval/origins.ts).
alter table origin_visits
  -- The payer or account; null: not known.
  add column payer text,
  -- Whether no purchase pays for it.
  add column is_free boolean not null default false,
  add column begun timestamptz not null default now();
alter table origin_waits
  add column payer text,
  add column is_free boolean not null default false;

-- What the visits at an origin leave for others. A visit that has lasted for longer than `long_seconds` gives its turn up, and goes
-- on; not more visits may do that than there are turns.
create function count_origin_visits(origin_named text, long_seconds float8, out quick int, out long int, out free int)
language sql stable as $$
  select count(*) filter (where begun > now() - long_seconds * interval '1 second'),
         count(*) filter (where begun <= now() - long_seconds * interval '1 second'),
         count(*) filter (where is_free)
  from origin_visits where origin = origin_named and until > now()
$$;

-- The order of a line: after those that the origin has refused, by arrival. Free work counts as if it had arrived later.
create function place_in_line(since timestamptz, is_free boolean) returns timestamptz
language sql immutable as $$
  select since + case when is_free then interval '30 seconds' else interval '0' end
$$;

drop function take_origin_turn(text, text, uuid, text, int, int, int, int);

-- Takes a turn at an origin, as one round trip. Processes of the release before call it without the last four parameters.
--
-- `line` names the line to join when no turn was taken. `wait_ms`: milliseconds until the turn begins. `blocked_seconds`: more
-- than 0 while the host, or the URL that `url_line` names, asked not to be asked. `free_turns`: turns that free work may have.
create function take_origin_turn(origin_named text, url_line text, visit uuid, job_named text, concurrency int, spacing_ms int,
                                 max_wait_ms int, visit_seconds int, payer_named text default null,
                                 free_named boolean default false, free_turns int default 2147483647,
                                 long_seconds float8 default 1e9)
returns table (line text, taken boolean, wait_ms float8, blocked_seconds float8, asked_status int, asked_seconds float8)
language plpgsql as $$
#variable_conflict use_column
declare
  held bool;
  own record;
  visits record;
begin
  -- A turn that a crash of the database takes back lets one request too many begin, which does no harm.
  perform set_config('synchronous_commit', 'off', true);
  -- The row of the origin is the lock for its turns: each statement below sees what the turn before has committed.
  insert into origins (origin, next_at) values (origin_named, now())
  on conflict (origin) do update set next_at = greatest(origins.next_at, now())
  returning origin, false, (extract(epoch from next_at - now()) * 1000)::float8,
            extract(epoch from blocked_until - now())::float8, origins.asked_status, origins.asked_seconds
  into line, taken, wait_ms, blocked_seconds, asked_status, asked_seconds;
  if blocked_seconds > 0 then return next; return; end if;

  for own in select o.* from origins o where o.origin = url_line and o.blocked_until > now() loop
    line := url_line;
    blocked_seconds := extract(epoch from own.blocked_until - now());
    asked_status := own.asked_status;
    asked_seconds := own.asked_seconds;
    return next;
    return;
  end loop;
  blocked_seconds := null;
  if wait_ms > max_wait_ms then return next; return; end if;

  -- A turn that is kept for the job is its own. Otherwise a turn must be free, and no job that could have it may be ahead in the
  -- line; a job that has lost its kept turn, because its worker came too late, is not made to wait again.
  with kept as (
    delete from origin_visits v where v.job_key = job_named and v.origin = origin_named returning v.until > now() holds
  ) select bool_or(holds) from kept into held;
  if held is not true then
    select * from count_origin_visits(origin_named, long_seconds) into visits;
    if visits.quick + greatest(0, visits.long - concurrency) >= concurrency
       or (free_named and visits.free >= free_turns)
       or (select count(*) from origin_visits v
           where v.origin = origin_named and v.until > now() and v.payer = payer_named) >= concurrency
    then
      return next;
      return;
    end if;
    select w.tried, w.since from origin_waits w where w.job_key = job_named and w.origin = origin_named into own;
    if held is null and exists (
      select from origin_waits w
      where w.origin = origin_named and w.job_key <> job_named
        and (w.tried, place_in_line(w.since, w.is_free))
          < (coalesce(own.tried, false), place_in_line(coalesce(own.since, now()), free_named))
        and not (w.is_free and visits.free >= free_turns)
        and (select count(*) from origin_visits v
             where v.origin = origin_named and v.until > now() and v.payer = w.payer) < concurrency)
    then
      return next;
      return;
    end if;
  end if;
  insert into origin_visits (id, origin, until, job_key, payer, is_free)
  values (visit, origin_named, now() + visit_seconds * interval '1 second', job_named, payer_named, free_named);
  delete from origin_waits w where w.job_key = job_named;
  update origins o set next_at = o.next_at + spacing_ms * interval '1 millisecond' where o.origin = origin_named;
  taken := true;
  return next;
end $$;
