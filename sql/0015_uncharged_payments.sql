--! safe: two indexes, and a trigger that refuses less; very large tables hold writes up while the indexes are built

-- An entry that charged nothing may be deleted 30 days after it was entered (UNCHARGED_DAYS in server/payments/ledger.ts), and
-- a day after its authorization ran out: valid_before, in Unix seconds. On Solana valid_before is when a blockhash ends, give
-- or take a minute. Any other entry is kept: a settlement, and what the chain contradicts.
create function refuse_ledger_deletion() returns trigger language plpgsql as $$
begin
  if old.outcome in ('unpaid', 'failed') and old.chain_says is distinct from 'differs'
     and old.entered_at < now() - interval '30 days'
     and old.valid_before < extract(epoch from now() - interval '1 day') then
    return old;
  end if;
  raise exception 'entry % of % is kept', old.entry, tg_table_name using errcode = 'restrict_violation';
end $$;
drop trigger payment_ledger_kept on payment_ledger;
create trigger payment_ledger_kept before delete on payment_ledger for each row execute function refuse_ledger_deletion();

-- What pruning looks for, in the order in which it becomes due.
create index payment_ledger_uncharged on payment_ledger (entered_at)
  where outcome in ('unpaid', 'failed') and chain_says is distinct from 'differs';
create index verification_requests_uncharged on verification_requests (changed_at)
  where body is null and (state = 'failed' or state = 'expired' and payment is null and settlement_intent is not null);
