--! safe: new columns that may be null

-- What the vendors of the caller's tracing add to the span in `traceparent` (W3C tracestate, at most 512 characters). Null where there
-- is none.
alter table verification_requests add column tracestate text;
alter table alerts add column tracestate text;
