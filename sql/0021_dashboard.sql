--! safe: a column without a default, two indexes and a new table; on large tables, make the indexes concurrently beforehand

-- What the pages for people and operators read: how a request came to its state, receipts by the digest that they are for, and
-- what operators did on the dashboard.

-- The states that a request was in after its quote, oldest first: {"state", "at", "by"}; `by` is the process. At most 50 are
-- kept, and none once the request has expired. What a process of the release before moves has no entry.
alter table verification_requests add column history jsonb;

-- For the operators' list, newest first. A request at work is not in it: each of its steps would write the index.
create index verification_requests_ended on verification_requests (created_at, id)
  where state in ('completed', 'failed', 'expired');

-- People who have a document have its digest, and neither the serial nor the hash of its receipt.
create index receipts_subject on receipts using hash (subject_sha256);

-- What operators did on the dashboard. Nothing is deleted, and only an outcome is added.
create table operator_actions (
  action_id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  action text not null check (action ~ '^[a-z_]{1,40}$'),
  -- What it was done to: the id of a request, alert or job, or the handle of an account.
  subject text not null check (char_length(subject) <= 200),
  -- The session of the dashboard: a digest that opens nothing.
  session text not null check (char_length(session) <= 64),
  -- Null while it is done, and after a process that ended meanwhile.
  outcome text check (char_length(outcome) <= 200)
);

create function refuse_action_change() returns trigger language plpgsql as $$
begin
  if old.outcome is null and (new.action_id, new.at, new.action, new.subject, new.session)
     = (old.action_id, old.at, old.action, old.subject, old.session) then
    return new;
  end if;
  raise exception 'an action of an operator cannot be changed' using errcode = 'restrict_violation';
end $$;
create trigger operator_actions_constant before update on operator_actions for each row execute function refuse_action_change();
create trigger operator_actions_kept before delete on operator_actions for each row execute function refuse_change();
create trigger operator_actions_no_truncate before truncate on operator_actions for each statement execute function refuse_change();
