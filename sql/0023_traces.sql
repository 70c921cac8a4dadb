--! safe: new columns that may be null

-- The span (W3C traceparent) in which the payment of a request was bound, or an alert was raised. The work that follows from the
-- row is a part of it, in whichever process it is done. Null where that was not traced.
--
-- They are columns and no members of the job: a job is stored anew whenever its request waits, is swept or is woken, and the
-- row is what all of these begin with.
alter table verification_requests add column traceparent text;
alter table alerts add column traceparent text;
