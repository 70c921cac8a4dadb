--! safe: fewer constraints, and a new table

-- Checks without an account belong to the address of their caller: `account_id` is then an id made of the address, of which there is
-- no account.
alter table quote_checks drop constraint quote_checks_account_id_fkey;
alter table quote_check_days drop constraint quote_check_days_account_id_fkey;

-- Reports whose check is a task over MCP. What is found on their pages is in quote_checks.
create table report_checks (
  id uuid primary key,
  -- As quote_checks.account_id.
  owner_id uuid not null,
  markdown text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '1 day'
);
create index report_checks_owner on report_checks (owner_id);
create index report_checks_expiry on report_checks (expires_at);
