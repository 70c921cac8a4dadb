--! safe: a new column and a new table

-- What a settlement was begun with (see settlementIntent in server/payments/x402.ts): committed before the facilitator is
-- called, so a request in `settling` says where on the chain its payment is to be looked for.
alter table verification_requests add column settlement_intent json;
update verification_requests
  set settlement_intent = json_build_object('at', floor(extract(epoch from changed_at)), 'block', null, 'transaction', null)
  where state = 'settling';
alter table verification_requests add check (state <> 'settling' or settlement_intent is not null);

-- A client may name its payment (x402's extension payment-identifier): the same name by the same payer is the same purchase.
create index verification_requests_identifier
  on verification_requests ((payment #>> '{identity,payer}'), (payment ->> 'identifier'))
  where payment ->> 'identifier' is not null;

-- What became of every payment that was accepted, written once its fate is certain, in the transaction that makes it so.
-- Rows outlive their requests' results and are never deleted: this is the operator's book of revenue.
create table payment_ledger (
  entry bigint generated always as identity primary key,
  entered_at timestamptz not null default now(),
  request_id uuid not null references verification_requests (id),
  -- settled: charged. unpaid: given to a facilitator, and provably never charged. failed: never given to one.
  outcome text not null check (outcome in ('settled', 'unpaid', 'failed')),
  -- Why it was not charged: a settlement's reason, or the error code of the request.
  reason text,
  network text not null,
  asset text not null,
  payer text not null,
  nonce text not null,
  pay_to text not null,
  amount_atomic numeric(30) not null check (amount_atomic >= 0),
  -- Unix seconds: the chain takes the authorization no later.
  valid_before bigint not null,
  provider text,
  mode text check (mode in ('offline', 'testnet', 'mainnet')),
  -- Null where nothing moved, offline mode included.
  transaction text,
  -- What the chain said of this entry when the two were last compared.
  reconciled_at timestamptz,
  chain_says text check (chain_says in ('agrees', 'differs')),
  check ((outcome = 'settled') = (reason is null)),
  check (outcome <> 'settled' or (provider is not null and mode is not null)),
  check ((transaction is not null) = (outcome = 'settled' and mode <> 'offline')),
  check ((reconciled_at is null) = (chain_says is null))
);
-- At most one charge for one request, whatever the code says.
create unique index payment_ledger_one_charge on payment_ledger (request_id) where outcome = 'settled';
create index payment_ledger_payment on payment_ledger (payer, nonce);
create trigger payment_ledger_kept before delete on payment_ledger for each row execute function refuse_change();

insert into payment_ledger (entered_at, request_id, outcome, network, asset, payer, nonce, pay_to, amount_atomic, valid_before,
                            provider, mode, transaction)
select changed_at, id, 'settled', payment #>> '{identity,network}', payment #>> '{identity,asset}',
       payment #>> '{identity,payer}', payment #>> '{identity,nonce}', payment #>> '{requirements,payTo}',
       (payment #>> '{requirements,amount}')::numeric, (payment ->> 'valid_before')::bigint, settlement #>> '{payment,provider}', settlement #>> '{payment,mode}',
       settlement #>> '{payment,transaction}'
from verification_requests where settlement is not null and state in ('settled', 'completed');
