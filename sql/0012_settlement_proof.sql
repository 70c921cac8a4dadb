--! safe: two new columns, and an index on the ledger; a very large ledger holds writes up while it is built

-- What a settlement was counted on (see settlementProofs in server/payments/x402.ts). `unrecorded`: booked by a release
-- that did not keep it. Null where nothing moved, offline mode included.
alter table payment_ledger add column proof text
  check (proof in ('chain', 'facilitator', 'unconfirmed', 'unrecorded'));
-- Which log of the transaction used the authorization, where the chain was read.
alter table payment_ledger add column log_index integer check (log_index >= 0);
update payment_ledger set proof = 'unrecorded' where transaction is not null;
alter table payment_ledger
  add check ((proof is not null) = (transaction is not null)),
  add check ((log_index is not null) = (proof is not distinct from 'chain'));

-- One log of a transaction pays for one request. An EVM transaction may use several authorizations, each with a log of its
-- own. The index also finds every entry of a transaction.
create unique index payment_ledger_one_log on payment_ledger (network, transaction, log_index);
-- Where only the facilitator's word is there, one transaction pays for one request.
create unique index payment_ledger_one_word on payment_ledger (network, transaction)
  where proof in ('facilitator', 'unconfirmed');
