--! safe: a new function only

-- Takes a turn at an origin (see workers/retrieval/origins.ts), as one round trip instead of five.
--
-- `line` names the line to join when no turn was taken. `wait_ms`: milliseconds until the turn begins. `blocked_seconds`: more
-- than 0 while the host, or the URL that `url_line` names, asked not to be asked.
create function take_origin_turn(origin_named text, url_line text, visit uuid, job_named text, concurrency int, spacing_ms int,
                                 max_wait_ms int, visit_seconds int)
returns table (line text, taken boolean, wait_ms float8, blocked_seconds float8, asked_status int, asked_seconds float8)
language plpgsql as $$
#variable_conflict use_column
declare
  held bool;
  own record;
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

  -- A turn that is kept for the job is its own. Otherwise a turn must be free, and no job may be ahead in the line; a job that
  -- has lost its kept turn, because its worker came too late, is not made to wait again.
  with kept as (
    delete from origin_visits v where v.job_key = job_named and v.origin = origin_named returning v.until > now() holds
  ) select bool_or(holds) from kept into held;
  if held is not true then
    if (select count(*) from origin_visits v where v.origin = origin_named and v.until > now()) >= concurrency then
      return next;
      return;
    end if;
    select w.tried, w.since from origin_waits w where w.job_key = job_named and w.origin = origin_named into own;
    if held is null and exists (
      select from origin_waits w
      where w.origin = origin_named and w.job_key <> job_named
        and (w.tried, w.since) < (coalesce(own.tried, false), coalesce(own.since, 'infinity')))
    then
      return next;
      return;
    end if;
  end if;
  insert into origin_visits (id, origin, until, job_key)
  values (visit, origin_named, now() + visit_seconds * interval '1 second', job_named);
  delete from origin_waits w where w.job_key = job_named;
  update origins o set next_at = o.next_at + spacing_ms * interval '1 millisecond' where o.origin = origin_named;
  taken := true;
  return next;
end $$;
