-- Made by `npm run --silent cli -- schema > sql/schema.sql`. A test holds it to the migrations.

create table accounts (
  id uuid not null,
  handle text not null,
  tier text not null default 'free'::text,
  created_at timestamp with time zone not null default now(),
  granted_tier text not null default 'free'::text,
  disabled_at timestamp with time zone,
  constraint accounts_granted_tier_check CHECK ((granted_tier = ANY (ARRAY['free'::text, 'dev'::text, 'pro'::text]))),
  constraint accounts_handle_check CHECK ((handle ~ '^[a-z0-9][a-z0-9_-]{0,63}$'::text)),
  constraint accounts_handle_key UNIQUE (handle),
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_tier_check CHECK ((tier = ANY (ARRAY['free'::text, 'dev'::text, 'pro'::text])))
);

create table alert_attempts (
  alert_id text not null,
  attempt integer not null,
  at timestamp with time zone not null,
  ms integer not null,
  status integer,
  error text,
  constraint alert_attempts_alert_id_fkey FOREIGN KEY (alert_id) REFERENCES alerts(id) ON DELETE CASCADE,
  constraint alert_attempts_attempt_check CHECK ((attempt > 0)),
  constraint alert_attempts_ms_check CHECK ((ms >= 0)),
  constraint alert_attempts_pkey PRIMARY KEY (alert_id, attempt)
);

create table alert_days (
  day date not null,
  account_id uuid not null,
  asked integer not null default 0,
  found integer not null default 0,
  constraint alert_days_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint alert_days_asked_check CHECK ((asked >= 0)),
  constraint alert_days_found_check CHECK ((found >= 0)),
  constraint alert_days_pkey PRIMARY KEY (day, account_id)
);

create table alerts (
  id text not null,
  webhook_id uuid not null,
  event_seq bigint not null,
  type text not null,
  body text not null,
  serial bigint not null,
  state text not null default 'pending'::text,
  attempts integer not null default 0,
  created_at timestamp with time zone not null default now(),
  next_attempt_at timestamp with time zone,
  settled_at timestamp with time zone,
  lane text not null default 'untried'::text,
  traceparent text,
  tracestate text,
  constraint alerts_check CHECK (((state = 'pending'::text) = (settled_at IS NULL))),
  constraint alerts_event_seq_check CHECK ((event_seq > 0)),
  constraint alerts_id_check CHECK ((id ~ '^wh_[0-9a-f]{32}$'::text)),
  constraint alerts_lane_check CHECK ((lane = ANY (ARRAY['proved'::text, 'untried'::text, 'slow'::text]))),
  constraint alerts_pkey PRIMARY KEY (id),
  constraint alerts_serial_fkey FOREIGN KEY (serial) REFERENCES receipts(serial),
  constraint alerts_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'discarded'::text]))),
  constraint alerts_webhook_id_event_seq_key UNIQUE (webhook_id, event_seq),
  constraint alerts_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhooks(id) ON DELETE CASCADE
);

create table api_keys (
  id uuid not null,
  account_id uuid not null,
  key_hash bytea not null,
  kind text not null,
  label text,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint api_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint api_keys_key_hash_check CHECK ((octet_length(key_hash) = 32)),
  constraint api_keys_key_hash_key UNIQUE (key_hash),
  constraint api_keys_kind_check CHECK ((kind = ANY (ARRAY['full'::text, 'read_only'::text, 'heartbeat'::text]))),
  constraint api_keys_label_check CHECK ((char_length(label) <= 100)),
  constraint api_keys_pkey PRIMARY KEY (id)
);

create table billing_checkouts (
  account_id uuid not null,
  provider text,
  attempt bigint not null default 1,
  tier text,
  checkout_id text,
  expires_at timestamp with time zone,
  constraint billing_checkouts_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint billing_checkouts_check CHECK ((((tier IS NULL) = (expires_at IS NULL)) AND ((tier IS NULL) = (provider IS NULL)))),
  constraint billing_checkouts_check1 CHECK (((tier IS NOT NULL) OR (checkout_id IS NULL))),
  constraint billing_checkouts_pkey PRIMARY KEY (account_id),
  constraint billing_checkouts_provider_check CHECK ((provider = ANY (ARRAY['stripe'::text, 'simulation'::text]))),
  constraint billing_checkouts_tier_check CHECK ((tier = ANY (ARRAY['dev'::text, 'pro'::text])))
);

create table billing_customers (
  customer_id text not null,
  account_id uuid not null,
  provider text not null,
  created_at timestamp with time zone not null default now(),
  gone_at timestamp with time zone,
  looks bigint not null default 0,
  seen_look bigint not null default 0,
  constraint billing_customers_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint billing_customers_check CHECK ((seen_look <= looks)),
  constraint billing_customers_customer_id_check CHECK ((char_length(customer_id) <= 255)),
  constraint billing_customers_pkey PRIMARY KEY (customer_id),
  constraint billing_customers_provider_check CHECK ((provider = ANY (ARRAY['stripe'::text, 'simulation'::text])))
);

create table billing_events (
  event_id text not null,
  type text not null,
  customer_id text not null,
  created_at timestamp with time zone not null,
  received_at timestamp with time zone not null default now(),
  constraint billing_events_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES billing_customers(customer_id),
  constraint billing_events_event_id_check CHECK ((char_length(event_id) <= 255)),
  constraint billing_events_pkey PRIMARY KEY (event_id)
);

create table billing_subscriptions (
  subscription_id text not null,
  customer_id text not null,
  status text not null,
  tier text not null,
  payment text not null,
  current_period_end timestamp with time zone,
  cancel_at_period_end boolean not null,
  past_due_since timestamp with time zone,
  constraint billing_subscriptions_check CHECK (((status = 'past_due'::text) = (past_due_since IS NOT NULL))),
  constraint billing_subscriptions_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES billing_customers(customer_id),
  constraint billing_subscriptions_payment_check CHECK ((payment = ANY (ARRAY['kept'::text, 'refunded'::text, 'disputed'::text]))),
  constraint billing_subscriptions_pkey PRIMARY KEY (subscription_id),
  constraint billing_subscriptions_status_check CHECK ((char_length(status) <= 64)),
  constraint billing_subscriptions_subscription_id_check CHECK ((char_length(subscription_id) <= 255)),
  constraint billing_subscriptions_tier_check CHECK ((tier = ANY (ARRAY['free'::text, 'dev'::text, 'pro'::text])))
);

create table capture_totals (
  one boolean not null default true,
  rows bigint not null,
  bytes bigint not null,
  constraint capture_totals_bytes_check CHECK ((bytes >= 0)),
  constraint capture_totals_one_check CHECK (one),
  constraint capture_totals_pkey PRIMARY KEY (one),
  constraint capture_totals_rows_check CHECK ((rows >= 0))
) with (fillfactor=10);

create table captures (
  id uuid not null,
  created_at timestamp with time zone not null default now(),
  sealed bytea not null storage external,
  bytes integer not null,
  manifest bytea,
  serial bigint,
  constraint captures_bytes_check CHECK ((bytes > 0)),
  constraint captures_check CHECK (((manifest IS NULL) = (serial IS NULL))),
  constraint captures_pkey PRIMARY KEY (id)
);

create table chain_head (
  one boolean not null default true,
  serial bigint not null,
  receipt_hash bytea not null,
  ts_ms bigint not null,
  frontier bytea not null,
  checkpoint text not null,
  key_changes integer not null default 0,
  constraint chain_head_check CHECK ((octet_length(frontier) = (32 * length(replace(((serial)::bit(63))::text, '0'::text, ''::text))))),
  constraint chain_head_one_check CHECK (one),
  constraint chain_head_pkey PRIMARY KEY (one),
  constraint chain_head_receipt_hash_check CHECK ((octet_length(receipt_hash) = 32)),
  constraint chain_head_serial_check CHECK ((serial >= 0)),
  constraint chain_head_ts_ms_check CHECK ((ts_ms >= 0))
) with (fillfactor=10);

create table citation_watches (
  id uuid not null,
  account_id uuid not null,
  name text not null,
  webhook_id uuid not null,
  request_id uuid not null,
  evidence_id text not null,
  source_url text not null,
  quote text not null,
  every_hours integer not null,
  state text not null default 'present'::text,
  last_seen jsonb not null,
  last_check jsonb,
  failures integer not null default 0,
  check_at timestamp with time zone not null,
  event_seq bigint not null default 0,
  created_at timestamp with time zone not null default now(),
  flips_full_at timestamp with time zone,
  constraint citation_watches_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint citation_watches_account_id_name_key UNIQUE (account_id, name),
  constraint citation_watches_every_hours_check CHECK (((every_hours >= 1) AND (every_hours <= 720))),
  constraint citation_watches_evidence_id_check CHECK ((evidence_id ~ '^e[1-6]$'::text)),
  constraint citation_watches_failures_check CHECK ((failures >= 0)),
  constraint citation_watches_name_check CHECK ((name ~ '^[A-Za-z0-9._-]{1,128}$'::text)),
  constraint citation_watches_pkey PRIMARY KEY (id),
  constraint citation_watches_quote_check CHECK (((char_length(quote) >= 1) AND (char_length(quote) <= 1000))),
  constraint citation_watches_source_url_check CHECK ((char_length(source_url) <= 2048)),
  constraint citation_watches_state_check CHECK ((state = ANY (ARRAY['present'::text, 'changed'::text, 'vanished'::text]))),
  constraint citation_watches_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhooks(id),
  constraint citation_watches_webhook_id_key UNIQUE (webhook_id)
);

create table day_figures (
  day date not null,
  first_minute timestamp with time zone not null,
  recorded integer not null,
  well integer not null,
  constraint day_figures_check CHECK (((well >= 0) AND (well <= recorded))),
  constraint day_figures_pkey PRIMARY KEY (day),
  constraint day_figures_recorded_check CHECK (((recorded >= 0) AND (recorded <= 1440)))
);

create table ended_figures (
  single boolean not null default true,
  figures bytea,
  constraint ended_figures_pkey PRIMARY KEY (single),
  constraint ended_figures_single_check CHECK (single)
);

create table journal_slots (
  account_id uuid not null,
  slot text not null,
  content bytea not null storage external,
  sha256 bytea not null,
  updated_at timestamp with time zone not null default now(),
  constraint journal_slots_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint journal_slots_content_check CHECK ((octet_length(content) <= 65536)),
  constraint journal_slots_pkey PRIMARY KEY (account_id, slot),
  constraint journal_slots_sha256_check CHECK ((octet_length(sha256) = 32)),
  constraint journal_slots_slot_check CHECK ((slot ~ '^[A-Za-z0-9._-]{1,128}$'::text))
);

create table leases (
  id text not null,
  account_id uuid not null,
  lease text not null,
  sig_ed25519 bytea not null,
  granted_ms bigint not null,
  issued_ms bigint not null,
  expires_ms bigint not null,
  recheck_by_ms bigint not null,
  revocation text,
  revocation_sig_ed25519 bytea,
  revoked_ms bigint,
  grant_serial bigint not null,
  renew_serial bigint,
  revoke_serial bigint,
  constraint leases_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint leases_check CHECK ((issued_ms >= granted_ms)),
  constraint leases_check1 CHECK ((expires_ms > issued_ms)),
  constraint leases_check2 CHECK (((recheck_by_ms > issued_ms) AND (recheck_by_ms <= LEAST(expires_ms, (issued_ms + 30000))))),
  constraint leases_check3 CHECK ((num_nonnulls(revocation, revocation_sig_ed25519, revoked_ms, revoke_serial) = ANY (ARRAY[0, 4]))),
  constraint leases_grant_serial_fkey FOREIGN KEY (grant_serial) REFERENCES receipts(serial),
  constraint leases_id_check CHECK ((id ~ '^ls_[0-9a-f]{32}$'::text)),
  constraint leases_pkey PRIMARY KEY (id),
  constraint leases_renew_serial_fkey FOREIGN KEY (renew_serial) REFERENCES receipts(serial),
  constraint leases_revocation_sig_ed25519_check CHECK ((octet_length(revocation_sig_ed25519) = 64)),
  constraint leases_revoke_serial_fkey FOREIGN KEY (revoke_serial) REFERENCES receipts(serial),
  constraint leases_sig_ed25519_check CHECK ((octet_length(sig_ed25519) = 64))
);

create table looks (
  id uuid not null,
  address_key bytea not null,
  network_key bytea not null,
  day date not null,
  pair_hash bytea not null,
  body json,
  sample text,
  domain text not null,
  state text not null default 'pending'::text,
  stage text not null default 'waiting'::text,
  runs smallint not null default 1,
  attempt uuid,
  waiting json,
  priority smallint not null,
  result bytea,
  error json,
  created_at timestamp with time zone not null default now(),
  changed_at timestamp with time zone not null default now(),
  constraint looks_address_key_check CHECK ((octet_length(address_key) = 16)),
  constraint looks_address_key_day_pair_hash_key UNIQUE (address_key, day, pair_hash),
  constraint looks_check CHECK (((state = 'completed'::text) = (result IS NOT NULL))),
  constraint looks_check1 CHECK (((state = 'failed'::text) = (error IS NOT NULL))),
  constraint looks_check2 CHECK (((state = 'expired'::text) = (body IS NULL))),
  constraint looks_network_key_check CHECK ((octet_length(network_key) = 16)),
  constraint looks_pair_hash_check CHECK ((octet_length(pair_hash) = 32)),
  constraint looks_pkey PRIMARY KEY (id),
  constraint looks_priority_check CHECK ((priority >= 0)),
  constraint looks_runs_check CHECK ((runs > 0)),
  constraint looks_stage_check CHECK ((stage = ANY (ARRAY['waiting'::text, 'reading'::text, 'assessing'::text]))),
  constraint looks_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'completed'::text, 'failed'::text, 'expired'::text])))
);

create table minute_figures (
  minute timestamp with time zone not null,
  well boolean not null,
  queue_depth integer not null,
  oldest_seconds real not null,
  counters jsonb not null,
  payments jsonb,
  constraint minute_figures_minute_check CHECK ((minute = date_trunc('minute'::text, minute))),
  constraint minute_figures_oldest_seconds_check CHECK ((oldest_seconds >= (0)::double precision)),
  constraint minute_figures_pkey PRIMARY KEY (minute),
  constraint minute_figures_queue_depth_check CHECK ((queue_depth >= 0))
);

create unlogged table observations (
  key bytea not null,
  value bytea storage external,
  checked_at timestamp with time zone,
  fetcher uuid,
  fetching_until timestamp with time zone,
  constraint observations_key_check CHECK ((octet_length(key) = 32)),
  constraint observations_pkey PRIMARY KEY (key)
);

create table operator_actions (
  action_id bigint generated always as identity not null,
  at timestamp with time zone not null default now(),
  action text not null,
  subject text not null,
  session text not null,
  outcome text,
  constraint operator_actions_action_check CHECK ((action ~ '^[a-z_]{1,40}$'::text)),
  constraint operator_actions_outcome_check CHECK ((char_length(outcome) <= 200)),
  constraint operator_actions_pkey PRIMARY KEY (action_id),
  constraint operator_actions_session_check CHECK ((char_length(session) <= 64)),
  constraint operator_actions_subject_check CHECK ((char_length(subject) <= 200))
);

create table operator_refusals (
  day date not null,
  refused bigint not null,
  last_at timestamp with time zone not null,
  constraint operator_refusals_pkey PRIMARY KEY (day),
  constraint operator_refusals_refused_check CHECK ((refused > 0))
);

create unlogged table origin_visits (
  id uuid not null,
  origin text not null,
  until timestamp with time zone not null,
  job_key text,
  payer text,
  is_free boolean not null default false,
  begun timestamp with time zone not null default now(),
  constraint origin_visits_pkey PRIMARY KEY (id)
);

create unlogged table origin_waits (
  job_key text not null,
  origin text not null,
  job json not null,
  tried boolean not null,
  since timestamp with time zone not null,
  payer text,
  is_free boolean not null default false,
  constraint origin_waits_pkey PRIMARY KEY (job_key)
);

create unlogged table origins (
  origin text not null,
  next_at timestamp with time zone not null default now(),
  blocked_until timestamp with time zone,
  asked_status integer,
  asked_seconds double precision,
  constraint origins_check CHECK (((blocked_until IS NULL) = (asked_status IS NULL))),
  constraint origins_check1 CHECK (((asked_status IS NULL) = (asked_seconds IS NULL))),
  constraint origins_pkey PRIMARY KEY (origin)
);

create table payers (
  payer text not null,
  settled bigint not null default 0,
  max_in_flight integer not null,
  changed_at timestamp with time zone not null default now(),
  constraint payers_max_in_flight_check CHECK (((max_in_flight >= 1) AND (max_in_flight <= 256))),
  constraint payers_pkey PRIMARY KEY (payer),
  constraint payers_settled_check CHECK ((settled >= 0))
);

create table payment_claims (
  network text not null,
  asset text not null,
  payer text not null,
  nonce text not null,
  request_id uuid not null,
  claimed_at timestamp with time zone not null default now(),
  constraint payment_claims_pkey PRIMARY KEY (network, asset, payer, nonce),
  constraint payment_claims_request_id_fkey FOREIGN KEY (request_id) REFERENCES verification_requests(id),
  constraint payment_claims_request_id_key UNIQUE (request_id)
);

create table payment_ledger (
  entry bigint generated always as identity not null,
  entered_at timestamp with time zone not null default now(),
  request_id uuid not null,
  outcome text not null,
  reason text,
  network text not null,
  asset text not null,
  payer text not null,
  nonce text not null,
  pay_to text not null,
  amount_atomic numeric(30,0) not null,
  valid_before bigint not null,
  provider text,
  mode text,
  transaction text,
  reconciled_at timestamp with time zone,
  chain_says text,
  proof text,
  log_index integer,
  constraint payment_ledger_amount_atomic_check CHECK ((amount_atomic >= (0)::numeric)),
  constraint payment_ledger_chain_says_check CHECK ((chain_says = ANY (ARRAY['agrees'::text, 'differs'::text]))),
  constraint payment_ledger_check CHECK (((outcome = 'settled'::text) = (reason IS NULL))),
  constraint payment_ledger_check1 CHECK (((outcome <> 'settled'::text) OR ((provider IS NOT NULL) AND (mode IS NOT NULL)))),
  constraint payment_ledger_check2 CHECK (((transaction IS NOT NULL) = ((outcome = 'settled'::text) AND (mode <> 'offline'::text)))),
  constraint payment_ledger_check3 CHECK (((reconciled_at IS NULL) = (chain_says IS NULL))),
  constraint payment_ledger_check4 CHECK (((proof IS NOT NULL) = (transaction IS NOT NULL))),
  constraint payment_ledger_check5 CHECK (((log_index IS NOT NULL) = (NOT (proof IS DISTINCT FROM 'chain'::text)))),
  constraint payment_ledger_log_index_check CHECK ((log_index >= 0)),
  constraint payment_ledger_mode_check CHECK ((mode = ANY (ARRAY['offline'::text, 'testnet'::text, 'mainnet'::text]))),
  constraint payment_ledger_outcome_check CHECK ((outcome = ANY (ARRAY['settled'::text, 'unpaid'::text, 'failed'::text]))),
  constraint payment_ledger_pkey PRIMARY KEY (entry),
  constraint payment_ledger_proof_check CHECK ((proof = ANY (ARRAY['chain'::text, 'facilitator'::text, 'unconfirmed'::text, 'unrecorded'::text]))),
  constraint payment_ledger_request_id_fkey FOREIGN KEY (request_id) REFERENCES verification_requests(id)
);

create table processes (
  id uuid not null,
  kind text not null,
  host text not null,
  pid integer not null,
  settings json not null,
  started_at timestamp with time zone not null default now(),
  beat_at timestamp with time zone not null default now(),
  figures bytea,
  drain_asked_at timestamp with time zone,
  drained_at timestamp with time zone,
  constraint processes_kind_check CHECK ((kind = ANY (ARRAY['web'::text, 'worker'::text, 'all'::text]))),
  constraint processes_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=200);

create table quote_check_days (
  account_id uuid not null,
  day date not null,
  pages integer not null,
  constraint quote_check_days_pages_check CHECK ((pages >= 0)),
  constraint quote_check_days_pkey PRIMARY KEY (account_id, day)
);

create table quote_checks (
  id uuid not null,
  account_id uuid not null,
  body_hash bytea not null,
  body json not null,
  domain text not null,
  state text not null default 'pending'::text,
  counted_on date,
  begun boolean not null default false,
  attempt uuid,
  waiting json,
  priority smallint not null,
  result bytea storage external,
  error json,
  created_at timestamp with time zone not null default now(),
  changed_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  keeps_text boolean not null default false,
  page_text bytea storage external,
  constraint quote_checks_account_id_body_hash_key UNIQUE (account_id, body_hash),
  constraint quote_checks_body_hash_check CHECK ((octet_length(body_hash) = 32)),
  constraint quote_checks_check CHECK (((state = 'completed'::text) = (result IS NOT NULL))),
  constraint quote_checks_check1 CHECK (((state = 'failed'::text) = (error IS NOT NULL))),
  constraint quote_checks_check2 CHECK (((state = 'pending'::text) = (expires_at IS NULL))),
  constraint quote_checks_check3 CHECK (((page_text IS NULL) OR keeps_text)),
  constraint quote_checks_pkey PRIMARY KEY (id),
  constraint quote_checks_priority_check CHECK ((priority >= 0)),
  constraint quote_checks_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'completed'::text, 'failed'::text])))
);

create table receipt_days (
  account_id uuid not null,
  day date not null,
  receipts integer not null default 0,
  lease_acts integer not null default 0,
  constraint receipt_days_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint receipt_days_lease_acts_check CHECK ((lease_acts >= 0)),
  constraint receipt_days_pkey PRIMARY KEY (account_id, day),
  constraint receipt_days_receipts_check CHECK ((receipts >= 0))
);

create table receipt_keys (
  account_id uuid not null,
  key_hash bytea not null,
  body_hash bytea not null,
  serial bigint not null,
  constraint receipt_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint receipt_keys_body_hash_check CHECK ((octet_length(body_hash) = 32)),
  constraint receipt_keys_key_hash_check CHECK ((octet_length(key_hash) = 32)),
  constraint receipt_keys_pkey PRIMARY KEY (account_id, key_hash),
  constraint receipt_keys_serial_fkey FOREIGN KEY (serial) REFERENCES receipts(serial)
);

create table receipts (
  serial bigint not null,
  ts_ms bigint not null,
  subject_sha256 bytea not null,
  label text,
  requested_by text not null,
  key_id integer not null,
  prev_hash bytea not null,
  receipt_hash bytea not null,
  sig_ed25519 bytea not null,
  constraint receipts_key_id_fkey FOREIGN KEY (key_id) REFERENCES signing_keys(key_id),
  constraint receipts_label_check CHECK ((char_length(label) <= 200)),
  constraint receipts_pkey PRIMARY KEY (serial),
  constraint receipts_prev_hash_check CHECK ((octet_length(prev_hash) = 32)),
  constraint receipts_receipt_hash_check CHECK ((octet_length(receipt_hash) = 32)),
  constraint receipts_requested_by_check CHECK (((char_length(requested_by) >= 1) AND (char_length(requested_by) <= 128))),
  constraint receipts_serial_check CHECK ((serial >= 1)),
  constraint receipts_sig_ed25519_check CHECK ((octet_length(sig_ed25519) = 64)),
  constraint receipts_subject_sha256_check CHECK ((octet_length(subject_sha256) = 32)),
  constraint receipts_ts_ms_check CHECK ((ts_ms >= 0))
);

create table registration_days (
  day date not null,
  address_hash bytea not null,
  registrations integer not null,
  constraint registration_days_address_hash_check CHECK ((octet_length(address_hash) = 32)),
  constraint registration_days_pkey PRIMARY KEY (day, address_hash),
  constraint registration_days_registrations_check CHECK ((registrations > 0))
);

create table report_checks (
  id uuid not null,
  owner_id uuid not null,
  markdown text not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null default (now() + '1 day'::interval),
  constraint report_checks_pkey PRIMARY KEY (id)
);

create table schema_migrations (
  name text not null,
  sha256 text not null,
  applied_at timestamp with time zone not null default now(),
  constraint schema_migrations_pkey PRIMARY KEY (name)
);

create table signing_keys (
  key_id integer generated always as identity not null,
  use text not null,
  generation integer not null,
  pubkey bytea not null,
  status text not null default 'active'::text,
  first_serial bigint,
  last_serial bigint,
  introduced_by bigint,
  created_at timestamp with time zone not null default now(),
  retired_at timestamp with time zone,
  constraint signing_keys_check CHECK ((last_serial >= first_serial)),
  constraint signing_keys_check1 CHECK (((generation = 1) = (introduced_by IS NULL))),
  constraint signing_keys_check2 CHECK (((use = 'receipt'::text) = (first_serial IS NOT NULL))),
  constraint signing_keys_check3 CHECK ((((use = 'receipt'::text) AND (status <> 'active'::text)) = (last_serial IS NOT NULL))),
  constraint signing_keys_check4 CHECK (((status = 'active'::text) = (retired_at IS NULL))),
  constraint signing_keys_first_serial_check CHECK ((first_serial >= 1)),
  constraint signing_keys_generation_check CHECK ((generation >= 1)),
  constraint signing_keys_introduced_by_fkey FOREIGN KEY (introduced_by) REFERENCES receipts(serial),
  constraint signing_keys_pkey PRIMARY KEY (key_id),
  constraint signing_keys_pubkey_check CHECK ((octet_length(pubkey) = 32)),
  constraint signing_keys_pubkey_key UNIQUE (pubkey),
  constraint signing_keys_status_check CHECK ((status = ANY (ARRAY['active'::text, 'retired'::text, 'compromised'::text]))),
  constraint signing_keys_use_check CHECK ((use = ANY (ARRAY['receipt'::text, 'lease'::text, 'webhook'::text, 'checkpoint'::text]))),
  constraint signing_keys_use_generation_key UNIQUE (use, generation)
);

create table simulated_checkouts (
  id uuid not null,
  token_hash bytea not null,
  customer_id text not null,
  kind text not null,
  tier text,
  state text not null default 'open'::text,
  expires_at timestamp with time zone not null,
  constraint simulated_checkouts_check CHECK (((kind = 'manage'::text) = (tier IS NULL))),
  constraint simulated_checkouts_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES billing_customers(customer_id),
  constraint simulated_checkouts_kind_check CHECK ((kind = ANY (ARRAY['subscribe'::text, 'change'::text, 'manage'::text]))),
  constraint simulated_checkouts_pkey PRIMARY KEY (id),
  constraint simulated_checkouts_state_check CHECK ((state = ANY (ARRAY['open'::text, 'completed'::text, 'expired'::text]))),
  constraint simulated_checkouts_tier_check CHECK ((tier = ANY (ARRAY['dev'::text, 'pro'::text]))),
  constraint simulated_checkouts_token_hash_check CHECK ((octet_length(token_hash) = 32)),
  constraint simulated_checkouts_token_hash_key UNIQUE (token_hash)
);

create table simulated_subscriptions (
  id text not null,
  customer_id text not null,
  tier text not null,
  status text not null default 'active'::text,
  started_at timestamp with time zone not null,
  constraint simulated_subscriptions_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES billing_customers(customer_id),
  constraint simulated_subscriptions_pkey PRIMARY KEY (id),
  constraint simulated_subscriptions_status_check CHECK ((status = ANY (ARRAY['active'::text, 'canceled'::text]))),
  constraint simulated_subscriptions_tier_check CHECK ((tier = ANY (ARRAY['dev'::text, 'pro'::text])))
);

create table tile_middles (
  level smallint not null,
  index bigint not null,
  hashes bytea not null,
  constraint tile_middles_hashes_check CHECK ((octet_length(hashes) = 512)),
  constraint tile_middles_index_check CHECK ((index >= 0)),
  constraint tile_middles_level_check CHECK (((level >= 0) AND (level <= 3))),
  constraint tile_middles_pkey PRIMARY KEY (level, index)
);

create table timestamp_authorities (
  url text not null,
  asked_at timestamp with time zone not null,
  interval_seconds integer not null,
  failures integer not null default 0,
  problem text,
  constraint timestamp_authorities_check CHECK (((failures = 0) = (problem IS NULL))),
  constraint timestamp_authorities_failures_check CHECK ((failures >= 0)),
  constraint timestamp_authorities_interval_seconds_check CHECK ((interval_seconds > 0)),
  constraint timestamp_authorities_pkey PRIMARY KEY (url)
);

create table timestamps (
  tree_size bigint not null,
  url text not null,
  note text not null,
  reply bytea not null,
  generated_at timestamp with time zone not null,
  serial text not null,
  authority text not null,
  constraint timestamps_pkey PRIMARY KEY (tree_size, url),
  constraint timestamps_reply_check CHECK ((octet_length(reply) <= 65536)),
  constraint timestamps_tree_size_check CHECK ((tree_size >= 1))
);

create table tree_nodes (
  level smallint not null,
  index bigint not null,
  hash bytea not null,
  constraint tree_nodes_hash_check CHECK ((octet_length(hash) = 32)),
  constraint tree_nodes_index_check CHECK ((index >= 0)),
  constraint tree_nodes_level_check CHECK ((level = ANY (ARRAY[8, 16, 24, 32]))),
  constraint tree_nodes_pkey PRIMARY KEY (level, index)
);

create table verification_requests (
  id uuid not null,
  key_hash bytea not null,
  body_hash bytea not null,
  state text not null,
  body json,
  quote_expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  changed_at timestamp with time zone not null default now(),
  attempt uuid,
  payment json,
  payment_sealed bytea,
  observation json storage external,
  assessment json,
  settlement json,
  error json,
  result bytea storage external,
  settlement_header text,
  settlement_intent json,
  waiting json,
  address_key bytea,
  domain text,
  priority smallint not null default 0,
  accepted_at timestamp with time zone,
  payer text,
  history jsonb,
  traceparent text,
  tracestate text,
  claims smallint,
  capture_id uuid,
  constraint verification_requests_address_key_check CHECK ((octet_length(address_key) = 16)),
  constraint verification_requests_body_hash_check CHECK ((octet_length(body_hash) = 32)),
  constraint verification_requests_check CHECK (((state = ANY (ARRAY['quoted'::text, 'failed'::text, 'expired'::text, 'unpaid'::text])) OR (payment IS NOT NULL))),
  constraint verification_requests_check1 CHECK (((state <> ALL (ARRAY['accepted'::text, 'observed'::text, 'assessed'::text, 'settling'::text])) OR (payment_sealed IS NOT NULL))),
  constraint verification_requests_check10 CHECK (((state = 'failed'::text) = (error IS NOT NULL))),
  constraint verification_requests_check11 CHECK (((state = ANY (ARRAY['expired'::text, 'failed'::text])) OR (body IS NOT NULL))),
  constraint verification_requests_check12 CHECK (((state <> 'settling'::text) OR (settlement_intent IS NOT NULL))),
  constraint verification_requests_check2 CHECK (((state <> ALL (ARRAY['quoted'::text, 'settled'::text, 'completed'::text, 'unpaid'::text, 'failed'::text, 'expired'::text])) OR (payment_sealed IS NULL))),
  constraint verification_requests_check3 CHECK (((state <> ALL (ARRAY['observed'::text, 'assessed'::text, 'settling'::text, 'settled'::text])) OR (observation IS NOT NULL))),
  constraint verification_requests_check4 CHECK (((state <> ALL (ARRAY['assessed'::text, 'settling'::text, 'settled'::text])) OR (assessment IS NOT NULL))),
  constraint verification_requests_check5 CHECK (((state <> 'settled'::text) OR (settlement IS NOT NULL))),
  constraint verification_requests_check6 CHECK (((state = ANY (ARRAY['observed'::text, 'assessed'::text, 'settling'::text, 'settled'::text, 'unpaid'::text])) OR (observation IS NULL))),
  constraint verification_requests_check7 CHECK (((state = ANY (ARRAY['assessed'::text, 'settling'::text, 'settled'::text, 'unpaid'::text])) OR (assessment IS NULL))),
  constraint verification_requests_check8 CHECK (((state = ANY (ARRAY['settled'::text, 'completed'::text])) OR (settlement IS NULL))),
  constraint verification_requests_check9 CHECK (((state = 'completed'::text) = (result IS NOT NULL))),
  constraint verification_requests_claims_check CHECK (((claims >= 1) AND (claims <= 10))),
  constraint verification_requests_key_hash_check CHECK ((octet_length(key_hash) = 32)),
  constraint verification_requests_key_hash_key UNIQUE (key_hash),
  constraint verification_requests_pkey PRIMARY KEY (id),
  constraint verification_requests_priority_check CHECK ((priority >= 0)),
  constraint verification_requests_state_check CHECK ((state = ANY (ARRAY['quoted'::text, 'accepted'::text, 'observed'::text, 'assessed'::text, 'settling'::text, 'settled'::text, 'completed'::text, 'unpaid'::text, 'failed'::text, 'expired'::text])))
);

create table watchdog_scans (
  singleton boolean not null default true,
  seen_at timestamp with time zone not null default now(),
  open_at timestamp with time zone not null default now(),
  constraint watchdog_scans_pkey PRIMARY KEY (singleton),
  constraint watchdog_scans_singleton_check CHECK (singleton)
);

create table watchdogs (
  id uuid not null,
  account_id uuid not null,
  name text not null,
  webhook_id uuid not null,
  interval_s integer not null,
  grace_s integer not null,
  alert_after integer not null,
  remind_every_s integer,
  state text not null default 'watching'::text,
  started_at timestamp with time zone not null default now(),
  last_beat_at timestamp with time zone,
  beats bigint not null default 0,
  note text,
  failed_at timestamp with time zone,
  down_since timestamp with time zone,
  revived_at timestamp with time zone,
  reminded_at timestamp with time zone,
  paused_until timestamp with time zone,
  check_at timestamp with time zone default now(),
  event_seq bigint not null default 0,
  created_at timestamp with time zone not null default now(),
  outages_full_at timestamp with time zone,
  fails_wait_until timestamp with time zone,
  silent boolean not null default false,
  coalesced integer not null default 0,
  recent_beats bigint not null default 0,
  constraint watchdogs_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint watchdogs_account_id_name_key UNIQUE (account_id, name),
  constraint watchdogs_alert_after_check CHECK (((alert_after >= 1) AND (alert_after <= 100))),
  constraint watchdogs_check CHECK (((state <> 'down'::text) OR (down_since IS NOT NULL))),
  constraint watchdogs_check1 CHECK (((revived_at IS NULL) OR (down_since IS NOT NULL) OR (failed_at IS NOT NULL))),
  constraint watchdogs_check2 CHECK (((paused_until IS NULL) OR (state = 'paused'::text))),
  constraint watchdogs_check3 CHECK (((NOT silent) OR (failed_at IS NOT NULL))),
  constraint watchdogs_coalesced_check CHECK ((coalesced >= 0)),
  constraint watchdogs_grace_s_check CHECK (((grace_s >= 0) AND (grace_s <= 2592000))),
  constraint watchdogs_interval_s_check CHECK (((interval_s >= 10) AND (interval_s <= 2592000))),
  constraint watchdogs_name_check CHECK ((name ~ '^[A-Za-z0-9._-]{1,128}$'::text)),
  constraint watchdogs_note_check CHECK ((char_length(note) <= 200)),
  constraint watchdogs_pkey PRIMARY KEY (id),
  constraint watchdogs_recent_beats_check CHECK (((recent_beats >= 0) AND (recent_beats < '1152921504606846976'::bigint))),
  constraint watchdogs_remind_every_s_check CHECK (((remind_every_s >= 60) AND (remind_every_s <= 2592000))),
  constraint watchdogs_state_check CHECK ((state = ANY (ARRAY['watching'::text, 'down'::text, 'paused'::text]))),
  constraint watchdogs_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhooks(id),
  constraint watchdogs_webhook_id_key UNIQUE (webhook_id)
) with (fillfactor=70);

create table webhooks (
  id uuid not null,
  account_id uuid not null,
  url text not null,
  host text not null default split_part(url, '/'::text, 3),
  secret_version integer not null default 1,
  old_secrets integer not null default 0,
  old_secrets_until timestamp with time zone,
  state text not null default 'active'::text,
  slow boolean not null default false,
  sender uuid,
  sending_until timestamp with time zone,
  domain text,
  tried boolean not null default false,
  constraint webhooks_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint webhooks_check CHECK (((sender IS NULL) = (sending_until IS NULL))),
  constraint webhooks_check1 CHECK (((old_secrets = 0) = (old_secrets_until IS NULL))),
  constraint webhooks_pkey PRIMARY KEY (id),
  constraint webhooks_state_check CHECK ((state = ANY (ARRAY['active'::text, 'failing'::text, 'disabled'::text]))),
  constraint webhooks_url_check CHECK ((char_length(url) <= 2048))
);

create table witnessed_checkpoint (
  one boolean not null default true,
  tree_size bigint not null,
  checkpoint text not null,
  taken_at timestamp with time zone not null,
  published_at timestamp with time zone not null,
  constraint witnessed_checkpoint_one_check CHECK (one),
  constraint witnessed_checkpoint_pkey PRIMARY KEY (one),
  constraint witnessed_checkpoint_tree_size_check CHECK ((tree_size >= 1))
);

create table worker_beats (
  pool_id text not null,
  methodology text not null,
  beat_at timestamp with time zone not null default now(),
  booted_at timestamp with time zone not null default now(),
  assessor_paused_until timestamp with time zone,
  lock_key integer,
  lost_at timestamp with time zone,
  worker text,
  assessor_problem text,
  constraint worker_beats_pkey PRIMARY KEY (pool_id)
);

CREATE INDEX accounts_disabled ON public.accounts USING btree (id) WHERE (disabled_at IS NOT NULL);
CREATE INDEX alerts_lane_due ON public.alerts USING btree (lane, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);
CREATE INDEX alerts_settled ON public.alerts USING btree (settled_at) WHERE (settled_at IS NOT NULL);
CREATE INDEX alerts_waiting ON public.alerts USING btree (webhook_id, event_seq) WHERE ((state = 'pending'::text) OR (next_attempt_at IS NOT NULL));
CREATE INDEX api_keys_account ON public.api_keys USING btree (account_id);
CREATE INDEX api_keys_expires ON public.api_keys USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX api_keys_unused ON public.api_keys USING btree (created_at) WHERE (last_used_at IS NULL);
CREATE INDEX billing_customers_account ON public.billing_customers USING btree (account_id, created_at);
CREATE INDEX billing_events_received ON public.billing_events USING btree (received_at);
CREATE INDEX billing_subscriptions_customer ON public.billing_subscriptions USING btree (customer_id);
CREATE INDEX captures_by_age ON public.captures USING btree (created_at) INCLUDE (bytes);
CREATE INDEX citation_watches_check ON public.citation_watches USING btree (check_at);
CREATE INDEX journal_slots_updated ON public.journal_slots USING btree (updated_at);
CREATE INDEX leases_listed ON public.leases USING btree (account_id, granted_ms, id);
CREATE INDEX leases_unrevoked ON public.leases USING btree (account_id, expires_ms) WHERE (revoked_ms IS NULL);
CREATE INDEX looks_day ON public.looks USING btree (day);
CREATE INDEX looks_ended ON public.looks USING btree (changed_at) WHERE (state = ANY (ARRAY['completed'::text, 'failed'::text]));
CREATE INDEX looks_network ON public.looks USING btree (network_key, day);
CREATE INDEX looks_pending ON public.looks USING btree (domain) WHERE (state = 'pending'::text);
CREATE INDEX observations_checked ON public.observations USING btree (checked_at);
CREATE INDEX operator_actions_signed_out ON public.operator_actions USING btree (session) WHERE (action = 'sign_out'::text);
CREATE INDEX origin_visits_origin ON public.origin_visits USING btree (origin);
CREATE INDEX origin_waits_line ON public.origin_waits USING btree (origin, tried, since, job_key);
CREATE INDEX payers_prunable ON public.payers USING btree (changed_at) WHERE (settled = 0);
CREATE INDEX payment_ledger_entered ON public.payment_ledger USING btree (entered_at);
CREATE UNIQUE INDEX payment_ledger_one_charge ON public.payment_ledger USING btree (request_id) WHERE (outcome = 'settled'::text);
CREATE UNIQUE INDEX payment_ledger_one_log ON public.payment_ledger USING btree (network, transaction, log_index);
CREATE UNIQUE INDEX payment_ledger_one_word ON public.payment_ledger USING btree (network, transaction) WHERE (proof = ANY (ARRAY['facilitator'::text, 'unconfirmed'::text]));
CREATE INDEX payment_ledger_payment ON public.payment_ledger USING btree (payer, nonce);
CREATE INDEX payment_ledger_request ON public.payment_ledger USING btree (request_id);
CREATE INDEX payment_ledger_uncharged ON public.payment_ledger USING btree (entered_at) WHERE ((outcome = ANY (ARRAY['unpaid'::text, 'failed'::text])) AND (chain_says IS DISTINCT FROM 'differs'::text));
CREATE INDEX quote_check_days_day ON public.quote_check_days USING btree (day);
CREATE INDEX quote_checks_expiry ON public.quote_checks USING btree (expires_at);
CREATE INDEX quote_checks_pending ON public.quote_checks USING btree (account_id) WHERE (state = 'pending'::text);
CREATE INDEX quote_checks_pending_domain ON public.quote_checks USING btree (domain) WHERE (state = 'pending'::text);
CREATE INDEX receipt_days_day ON public.receipt_days USING btree (day);
CREATE INDEX receipts_found_by_hash ON public.receipts USING btree (((serial >> 18)), receipt_hash);
CREATE INDEX receipts_found_by_subject ON public.receipts USING btree (((serial >> 18)), subject_sha256, serial);
CREATE INDEX receipts_requested ON public.receipts USING btree (requested_by, serial);
CREATE INDEX report_checks_expiry ON public.report_checks USING btree (expires_at);
CREATE INDEX report_checks_owner ON public.report_checks USING btree (owner_id);
CREATE UNIQUE INDEX signing_keys_one_active ON public.signing_keys USING btree (use) WHERE (status = 'active'::text);
CREATE INDEX simulated_checkouts_expires ON public.simulated_checkouts USING btree (expires_at);
CREATE UNIQUE INDEX simulated_subscriptions_active ON public.simulated_subscriptions USING btree (customer_id) WHERE (status = 'active'::text);
CREATE INDEX timestamps_by_age ON public.timestamps USING btree (url, generated_at);
CREATE INDEX verification_requests_address ON public.verification_requests USING btree (address_key) WHERE ((state <> ALL (ARRAY['quoted'::text, 'completed'::text, 'unpaid'::text, 'failed'::text, 'expired'::text])) AND (address_key IS NOT NULL));
CREATE INDEX verification_requests_by_capture ON public.verification_requests USING btree (capture_id) WHERE (capture_id IS NOT NULL);
CREATE INDEX verification_requests_domain ON public.verification_requests USING btree (domain) WHERE ((state <> ALL (ARRAY['quoted'::text, 'completed'::text, 'unpaid'::text, 'failed'::text, 'expired'::text])) AND (domain IS NOT NULL));
CREATE INDEX verification_requests_ended ON public.verification_requests USING btree (created_at, id) WHERE (state = ANY (ARRAY['completed'::text, 'failed'::text, 'expired'::text]));
CREATE INDEX verification_requests_identifier ON public.verification_requests USING btree (((payment #>> '{identity,payer}'::text[])), ((payment ->> 'identifier'::text))) WHERE ((payment ->> 'identifier'::text) IS NOT NULL);
CREATE INDEX verification_requests_never_paid ON public.verification_requests USING btree (quote_expires_at) WHERE ((state = 'expired'::text) AND (payment IS NULL) AND (settlement_intent IS NULL));
CREATE INDEX verification_requests_open_quotes ON public.verification_requests USING btree (address_key, quote_expires_at) WHERE ((state = 'quoted'::text) AND (address_key IS NOT NULL));
CREATE INDEX verification_requests_payer ON public.verification_requests USING btree (payer) WHERE ((state <> ALL (ARRAY['quoted'::text, 'completed'::text, 'unpaid'::text, 'failed'::text, 'expired'::text])) AND (payer IS NOT NULL));
CREATE INDEX verification_requests_prunable ON public.verification_requests USING btree (changed_at) WHERE ((state = ANY (ARRAY['completed'::text, 'failed'::text])) AND (body IS NOT NULL));
CREATE INDEX verification_requests_quotes ON public.verification_requests USING btree (quote_expires_at) WHERE ((state = ANY (ARRAY['quoted'::text, 'unpaid'::text])) AND (body IS NOT NULL));
CREATE INDEX verification_requests_uncharged ON public.verification_requests USING btree (changed_at) WHERE ((body IS NULL) AND ((state = 'failed'::text) OR ((state = 'expired'::text) AND (payment IS NULL) AND (settlement_intent IS NOT NULL))));
CREATE INDEX verification_requests_working ON public.verification_requests USING btree (changed_at) WHERE (state = ANY (ARRAY['accepted'::text, 'observed'::text, 'assessed'::text, 'settling'::text, 'settled'::text]));
CREATE INDEX watchdogs_check ON public.watchdogs USING btree (check_at) WHERE (check_at IS NOT NULL);

CREATE OR REPLACE FUNCTION public.count_captures()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update capture_totals t
  set rows = t.rows + changed.sign * changed.rows, bytes = t.bytes + changed.sign * changed.bytes
  from (
    select case tg_op when 'INSERT' then 1 else -1 end sign, count(*) rows, coalesce(sum(c.bytes), 0) bytes from changed_captures c
  ) changed
  where changed.rows > 0;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.count_in_flight(payers_named text[], addresses bytea[], domains text[], asking bytea[])
 RETURNS TABLE(kind text, name text, n bigint, unsettled bigint, seconds double precision, most integer)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(id) from (
    select distinct hashtextextended(named, 8402) id from (
      select 'payer ' || p named from unnest(payers_named) p
      union all select 'address ' || encode(a, 'hex') from unnest(addresses || asking) a
      union all select 'domain ' || d from unnest(domains) d
    ) everyone order by id
  ) in_order;
  return query
    select 'payer', payer, count(*),
           coalesce(sum(greatest(1, ceil((payment #>> '{requirements,amount}')::numeric / 30000)))
             filter (where state <> 'settled'), 0)::bigint,
           extract(epoch from avg(now() - accepted_at))::float8, null::integer
    from verification_requests
    where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and payer = any(payers_named)
    group by payer
    union all
    select 'address', encode(address_key, 'hex'), count(*), 0, extract(epoch from avg(now() - accepted_at))::float8, null
    from verification_requests
    where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and address_key = any(addresses)
    group by address_key
    union all
    select 'domain', domain, count(*), 0, extract(epoch from avg(now() - accepted_at))::float8, null
    from verification_requests
    where state not in ('quoted', 'completed', 'unpaid', 'failed', 'expired') and domain = any(domains)
    group by domain
    union all
    select 'open_quotes', encode(address_key, 'hex'), count(*), 0,
           extract(epoch from min(quote_expires_at) - now())::float8, null
    from verification_requests
    where state = 'quoted' and address_key = any(asking) and quote_expires_at > now()
    group by address_key
    union all
    select 'standing', payer, settled, 0, null, max_in_flight from payers where payer = any(payers_named);
end $function$;
CREATE OR REPLACE FUNCTION public.count_origin_visits(origin_named text, long_seconds double precision, OUT quick integer, OUT long integer, OUT free integer)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
  select count(*) filter (where begun > now() - long_seconds * interval '1 second'),
         count(*) filter (where begun <= now() - long_seconds * interval '1 second'),
         count(*) filter (where is_free)
  from origin_visits where origin = origin_named and until > now()
$function$;
CREATE OR REPLACE FUNCTION public.place_in_line(since timestamp with time zone, is_free boolean)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select since + case when is_free then interval '30 seconds' else interval '0' end
$function$;
CREATE OR REPLACE FUNCTION public.refuse_action_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if old.outcome is null and (new.action_id, new.at, new.action, new.subject, new.session)
     = (old.action_id, old.at, old.action, old.subject, old.session) then
    return new;
  end if;
  raise exception 'an action of an operator cannot be changed' using errcode = 'restrict_violation';
end $function$;
CREATE OR REPLACE FUNCTION public.refuse_broken_link()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if exists (
    select from added a
    where a.prev_hash is distinct from case when a.serial = 1 then decode(repeat('00', 32), 'hex')
      else (select r.receipt_hash from receipts r where r.serial = a.serial - 1) end
  ) then
    raise exception 'a receipt does not follow the one before it' using errcode = 'restrict_violation';
  end if;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $function$;
CREATE OR REPLACE FUNCTION public.refuse_key_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if (new.key_id, new.use, new.generation, new.pubkey, new.first_serial, new.introduced_by, new.created_at)
     is distinct from (old.key_id, old.use, old.generation, old.pubkey, old.first_serial, old.introduced_by, old.created_at)
     or (old.status <> 'active' and (new.status = 'active' or new.last_serial is distinct from old.last_serial)) then
    raise exception 'a signing key cannot be changed, only ended' using errcode = 'restrict_violation';
  end if;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.refuse_key_out_of_turn()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if exists (
    select from added a left join signing_keys k on k.key_id = a.key_id and k.use = 'receipt'
      and a.serial >= k.first_serial and a.serial <= coalesce(k.last_serial, a.serial)
    where k.key_id is null
  ) then
    raise exception 'a receipt is signed with a key that is not in force' using errcode = 'restrict_violation';
  end if;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.refuse_ledger_deletion()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if old.outcome in ('unpaid', 'failed') and old.chain_says is distinct from 'differs'
     and old.entered_at < now() - interval '30 days'
     and old.valid_before < extract(epoch from now() - interval '1 day') then
    return old;
  end if;
  raise exception 'entry % of % is kept', old.entry, tg_table_name using errcode = 'restrict_violation';
end $function$;
CREATE OR REPLACE FUNCTION public.take_origin_turn(origin_named text, url_line text, visit uuid, job_named text, concurrency integer, spacing_ms integer, max_wait_ms integer, visit_seconds integer, payer_named text DEFAULT NULL::text, free_named boolean DEFAULT false, free_turns integer DEFAULT 2147483647, long_seconds double precision DEFAULT '1000000000'::numeric)
 RETURNS TABLE(line text, taken boolean, wait_ms double precision, blocked_seconds double precision, asked_status integer, asked_seconds double precision)
 LANGUAGE plpgsql
AS $function$
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
end $function$;
CREATE TRIGGER captures_added AFTER INSERT ON public.captures REFERENCING NEW TABLE AS changed_captures FOR EACH STATEMENT EXECUTE FUNCTION count_captures();
CREATE TRIGGER captures_deleted AFTER DELETE ON public.captures REFERENCING OLD TABLE AS changed_captures FOR EACH STATEMENT EXECUTE FUNCTION count_captures();
CREATE TRIGGER operator_actions_constant BEFORE UPDATE ON public.operator_actions FOR EACH ROW EXECUTE FUNCTION refuse_action_change();
CREATE TRIGGER operator_actions_kept BEFORE DELETE ON public.operator_actions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operator_actions_no_truncate BEFORE TRUNCATE ON public.operator_actions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payment_ledger_kept BEFORE DELETE ON public.payment_ledger FOR EACH ROW EXECUTE FUNCTION refuse_ledger_deletion();
CREATE TRIGGER receipts_append_only BEFORE DELETE OR UPDATE ON public.receipts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER receipts_key_in_force AFTER INSERT ON public.receipts REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_key_out_of_turn();
CREATE TRIGGER receipts_linked AFTER INSERT ON public.receipts REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_broken_link();
CREATE TRIGGER receipts_no_truncate BEFORE TRUNCATE ON public.receipts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER signing_keys_constant BEFORE UPDATE ON public.signing_keys FOR EACH ROW EXECUTE FUNCTION refuse_key_change();
CREATE TRIGGER signing_keys_kept BEFORE DELETE ON public.signing_keys FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER tile_middles_constant BEFORE UPDATE ON public.tile_middles FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER tree_nodes_append_only BEFORE DELETE OR UPDATE ON public.tree_nodes FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER tree_nodes_no_truncate BEFORE TRUNCATE ON public.tree_nodes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
