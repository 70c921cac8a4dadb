// The 25 tools of the control toolkit: the text of each for models, and the operation behind it.

import { MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import { MAX_SLOT_BYTES } from '../interface/limits.ts'
import type { Operation } from '../operation.ts'
import { readJournalSlot } from './journal.ts'
import { type OperationTool, operationTool } from './operation-tool.ts'
import { REPORT_VIEW } from './report-view.ts'
import type { Tool } from './tool.ts'

/** With the operation's name in the catalogue. */
type Entry = Omit<OperationTool, 'operation'> & { operation: string }

const LEASE_ID = { lease_id: 'ls_..., of service_lease_grant.' }
const WATCHDOG = { name: '' }
const SLOT = { slot: '' }

const TABLE: readonly Entry[] = [
  {
    name: 'service_register',
    title: 'Create an account',
    about:
      'Creates an account and returns its API key, once: store it first. Needed for every tool that takes a service_key.',
    operation: 'register',
    effect: 'adds',
    notes: { handle: 'a-z 0-9 - _, at most 64. Public: the requested_by of your receipts.' },
  },
  {
    name: 'service_usage_get',
    title: 'Usage and limits',
    about: 'Returns tier, limits, use of each, and when daily counts are reset.',
    operation: 'get_usage',
    effect: 'reads',
  },
  {
    name: 'service_checkout_create',
    title: 'Start a checkout',
    about:
      'Returns checkout_url, where a person can pay for a tier. Charges nothing itself. Repeated, it returns the same page.',
    operation: 'create_checkout',
    effect: 'sets',
    open: true,
    notes: { tier: `dev costs ${MONTHLY_PRICE_USD.dev} USD a month, pro ${MONTHLY_PRICE_USD.pro}.` },
  },
  {
    name: 'service_lease_grant',
    title: 'Grant a lease',
    about:
      'Signs permission for one agent to do one action, until expires_ms; it must be renewed before each recheck_by_ms, at most 30 seconds away. Not a lock. The gateway before the action checks it and enforces lim.',
    operation: 'grant_lease',
    effect: 'adds',
    notes: {
      agent: 'Who may act.',
      action: 'What may be done.',
      lim: 'Policy, signed unchanged; the gateway enforces it.',
      ttl_s: 'Seconds until it ends.',
    },
  },
  {
    name: 'service_lease_renew',
    title: 'Renew a lease',
    about:
      'Signs the same lease with a later recheck_by_ms; expires_ms stays. A revoked or expired one is refused: stop the action.',
    operation: 'renew_lease',
    effect: 'sets',
    notes: LEASE_ID,
  },
  {
    name: 'service_lease_verify',
    title: 'Check a lease',
    about: 'Returns whether a lease is valid now. Call it right before acting; do not keep the answer.',
    operation: 'verify_lease',
    effect: 'reads',
    notes: { ...LEASE_ID, agent: 'If given, must be its agent.', action: 'If given, must be its action.' },
  },
  {
    name: 'service_lease_revoke',
    title: 'Revoke a lease',
    about: 'Revokes a lease permanently: every gateway stops accepting it within 30 seconds.',
    operation: 'revoke_lease',
    effect: 'destroys',
    notes: LEASE_ID,
  },
  {
    name: 'service_lease_list',
    title: 'List leases',
    about: 'Lists the leases of the account and their state, newest first.',
    operation: 'list_leases',
    effect: 'reads',
    notes: { state: 'active: neither expired nor revoked.', limit: '', before: 'next of the page before.' },
  },
  {
    name: 'service_receipt_issue',
    title: 'Issue a receipt',
    about:
      'Signs a SHA-256 digest into the hash chain: proof that you submitted it and when, no more. Permanent and public, handle and label included.',
    operation: 'create_receipt',
    effect: 'adds',
    headers: ['idempotency_key'],
    notes: { subject_sha256: 'Lowercase hex, made by you.' },
  },
  {
    name: 'service_receipt_get',
    title: 'Get a receipt',
    about: 'Returns one receipt with a proof that it is in the chain. Receipts are public.',
    operation: 'get_receipt',
    effect: 'reads',
    notes: {
      serial: 'Its number in the chain.',
      tree_size: 'Prove it for this size; default: up to the head.',
    },
  },
  {
    name: 'service_receipt_verify',
    title: 'Verify a receipt',
    about:
      'Checks signature, key and hash of a receipt that you pass in, of a paid verification too. Without trusting this service: pin its keys, check offline.',
    operation: 'verify_receipt',
    effect: 'reads',
    meta: REPORT_VIEW,
    notes: {
      attestation: 'The receipt, all 12 members.',
      inclusion: '',
      checkpoint: '',
      envelope: 'Of a paid verification.',
      canonical_envelope_base64: '',
      verification: '',
    },
  },
  {
    name: 'service_receipt_list',
    title: 'List receipts',
    about: 'Lists the receipts of the account, newest first.',
    operation: 'list_receipts',
    effect: 'reads',
    notes: { limit: '', before: 'next of the page before.' },
  },
  {
    name: 'service_chain_head',
    title: 'Head of the chain',
    about:
      'Returns the head of the hash chain with its signed checkpoint, to be pinned. Keys: resource service://keys.',
    operation: 'get_chain_head',
    effect: 'reads',
  },
  {
    name: 'service_chain_export',
    title: 'Export the chain',
    about: 'Returns consecutive receipts, at most 1000, enough to verify them offline.',
    operation: 'get_chain',
    effect: 'reads',
    notes: {
      from: 'First serial; default 1.',
      to: 'Last serial; default: as far as 1000 or the head allow.',
    },
  },
  {
    name: 'service_chain_verify',
    title: 'Verify the chain',
    about: 'Recomputes hashes, links and signatures of a range of the chain; reports the first break.',
    operation: 'verify_chain',
    effect: 'reads',
    notes: { from: '', to: '' },
  },
  {
    name: 'service_watchdog_put',
    title: 'Create or change a watchdog',
    about:
      'Creates or changes a watchdog. Without a heartbeat within interval_s plus grace_s it sends a signed alert to webhook_url, once per outage; the interval starts now. webhook_secret is returned once, at creation.',
    operation: 'put_watchdog',
    effect: 'sets',
    notes: {
      ...WATCHDOG,
      interval_s: 'Seconds.',
      grace_s: 'Default: the larger of 5 and a tenth of interval_s.',
      webhook_url: 'Public https address.',
      alert_after: 'Missed intervals before it alerts.',
      remind_every_s: 'Seconds between reminders; null: none.',
    },
  },
  {
    name: 'service_watchdog_get',
    title: 'Get a watchdog',
    about: 'Returns one watchdog, its state, and when the next heartbeat is due.',
    operation: 'get_watchdog',
    effect: 'reads',
    notes: WATCHDOG,
  },
  {
    name: 'service_watchdog_list',
    title: 'List watchdogs',
    about: 'Lists the watchdogs of the account with their state.',
    operation: 'list_watchdogs',
    effect: 'reads',
  },
  {
    name: 'service_watchdog_pause',
    title: 'Pause or resume a watchdog',
    about: 'Pauses a watchdog, so that it cannot alert, or resumes it with a new deadline.',
    operation: 'pause_watchdog',
    effect: 'destroys',
    notes: { ...WATCHDOG, paused: 'true pauses, false resumes.', until: 'When it resumes by itself; null: never.' },
  },
  {
    name: 'service_watchdog_delete',
    title: 'Delete a watchdog',
    about: 'Deletes a watchdog permanently: it never alerts again.',
    operation: 'delete_watchdog',
    effect: 'destroys',
    notes: WATCHDOG,
  },
  {
    name: 'service_watchdog_heartbeat',
    title: 'Send a heartbeat',
    about:
      'Tells a watchdog that all is well, for a full interval from now; or, with status fail, that it should alert at once.',
    operation: 'send_heartbeat',
    effect: 'sets',
    notes: {
      ...WATCHDOG,
      status: 'fail: alert at once.',
      note: 'Sent with an alert.',
    },
  },
  {
    name: 'service_journal_put',
    title: 'Write a journal slot',
    about: 'Stores bytes in a slot and replaces what was there. if_match keeps you from overwriting a newer write.',
    operation: 'put_journal_slot',
    effect: 'destroys',
    notes: SLOT,
    headers: ['if_match', 'if_none_match'],
    bytes: { member: 'data', limit: MAX_SLOT_BYTES },
  },
  {
    name: 'service_journal_get',
    title: 'Read a journal slot',
    about: 'Returns the bytes of a slot in base64, with their SHA-256.',
    operation: 'read_journal_slot',
    effect: 'reads',
    notes: SLOT,
  },
  {
    name: 'service_journal_list',
    title: 'List journal slots',
    about: 'Lists the slots of the account without their bytes.',
    operation: 'list_journal_slots',
    effect: 'reads',
  },
  {
    name: 'service_journal_delete',
    title: 'Delete a journal slot',
    about: 'Deletes a slot and its bytes permanently.',
    operation: 'delete_journal_slot',
    effect: 'destroys',
    notes: SLOT,
    headers: ['if_match'],
  },
]

/** Made once for each catalogue and shared, so nothing may change them. */
export function controlTools(catalog: readonly Operation[]): readonly Tool[] {
  const known = made.get(catalog)
  if (known) return known
  const tools = makeTools(catalog)
  made.set(catalog, tools)
  return tools
}

const made = new WeakMap<readonly Operation[], readonly Tool[]>()

function makeTools(catalog: readonly Operation[]): readonly Tool[] {
  const operations: readonly Operation[] = [...catalog, readJournalSlot]
  return TABLE.map((entry) => {
    const operation = operations.find(({ name }) => name === entry.operation)
    if (operation?.answers !== 'plain') throw new Error(`no operation with a plain answer is called ${entry.operation}`)
    return operationTool({ ...entry, operation })
  })
}
