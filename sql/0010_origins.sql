--! safe: new columns that may be null, and a new table

-- What a host has asked for. `next_at` stays what spacing sets; a request to be left alone has columns of its own, so that
-- a refusal can name it.
alter table origins add column blocked_until timestamptz;
-- Status and seconds of the answer that asked, as it came: more seconds than are believed.
alter table origins add column asked_status integer;
alter table origins add column asked_seconds double precision;
-- SHA-256 of the URL whose answer blocked the host last. The same URL does not block its host twice in a row.
alter table origins add column blocked_by bytea;
alter table origins add check ((blocked_until is null) = (asked_status is null));
alter table origins add check ((asked_status is null) = (asked_seconds is null));

-- The job that a visit is for: a turn is kept for it before it has begun.
alter table origin_visits add column job_key text;

-- Jobs that wait for a turn at an origin, in the order in which they get one. The job itself stays in the queue with a
-- later time, so a lost row costs a job its place and nothing else.
create unlogged table origin_waits (
  job_key text not null,
  origin text not null,
  -- The job to be made when its turn has come.
  job json not null,
  -- The origin has told this job to wait once already; it goes behind those that were not tried yet.
  tried boolean not null,
  -- When what the job is for arrived.
  since timestamptz not null,
  primary key (job_key)
);
create index origin_waits_line on origin_waits (origin, tried, since, job_key);

-- What a request waits for, for the answer to its caller: set when its job is put off, cleared when a worker takes it up.
alter table verification_requests add column waiting json;
