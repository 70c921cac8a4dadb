// The 25 tools of the control toolkit: the text of each for models, and the operation behind it.

import { MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import { MAX_SLOT_BYTES } from '../journal/slots.ts'
import type { Operation } from '../operation.ts'
import { readJournalSlot } from './journal.ts'
import { type OperationTool, operationTool } from './operation-tool.ts'
import { REPORT_VIEW } from './report-view.ts'
import type { Tool } from './tool.ts'

/** With the operation's name in the catalogue. */
type Entry = Omit<OperationTool, 'operation'> & { operation: string }

const LEASE_ID = { lease_id: 'As service_lease_grant returned it (ls_...).' }
const WATCHDOG = { name: 'Name of the watchdog.' }

const TABLE: readonly Entry[] = [
  {
    name: 'service_register',
    title: 'Create an account',
    about:
      'Creates an account and returns its API key, once: it cannot be shown again or recovered, so store it before ' +
      'anything else. Call this if you have no service_key yet. An account that is never used is deleted after 90 days.',
    operation: 'register',
    effect: 'adds',
  },
  {
    name: 'service_usage_get',
    title: 'Usage and limits',
    about: 'Returns the tier, its limits, how much of each is used, and when the daily counts are reset.',
    operation: 'get_usage',
    effect: 'reads',
  },
  {
    name: 'service_checkout_create',
    title: 'Start a checkout',
    about:
      'Returns checkout_url, the page where a person can pay for the dev or pro tier. The call itself charges nothing. ' +
      'Repeated while the page is open, it returns the same page.',
    operation: 'create_checkout',
    effect: 'sets',
    open: true,
    notes: { tier: `dev costs ${MONTHLY_PRICE_USD.dev} USD a month, pro ${MONTHLY_PRICE_USD.pro}.` },
  },
  {
    name: 'service_lease_grant',
    title: 'Grant a lease',
    about:
      'Signs permission for one agent to do one action, until expires_ms. It authorizes only until its recheck_by_ms, at ' +
      'most 30 seconds away, and must be renewed before that. A permission, not a lock: each grant is a new lease. ' +
      'Only the gateway before the action checks the signature and enforces lim.',
    operation: 'grant_lease',
    effect: 'adds',
  },
  {
    name: 'service_lease_renew',
    title: 'Renew a lease',
    about:
      'Signs the same lease with a later recheck_by_ms, at most 30 seconds from now; expires_ms stays. A revoked or ' +
      'expired lease is not renewed: stop the action then.',
    operation: 'renew_lease',
    effect: 'sets',
    notes: LEASE_ID,
  },
  {
    name: 'service_lease_verify',
    title: 'Check a lease',
    about: 'Returns whether a lease is valid at this moment. Call it right before acting, and do not keep the answer.',
    operation: 'verify_lease',
    effect: 'reads',
    notes: { ...LEASE_ID, agent: 'Must be the agent of the lease.', action: 'Must be the action of the lease.' },
  },
  {
    name: 'service_lease_revoke',
    title: 'Revoke a lease',
    about:
      'Revokes a lease permanently: it cannot be renewed any more, so every gateway stops accepting it within 30 ' +
      'seconds. Repeated, it returns the same answer.',
    operation: 'revoke_lease',
    effect: 'destroys',
    notes: LEASE_ID,
  },
  {
    name: 'service_lease_list',
    title: 'List leases',
    about: 'Lists the leases of the account with their state, newest first.',
    operation: 'list_leases',
    effect: 'reads',
    notes: { state: 'active: only those that are neither expired nor revoked.', limit: 'Maximum number of leases.' },
  },
  {
    name: 'service_receipt_issue',
    title: 'Issue a receipt',
    about:
      'Signs a SHA-256 digest into the hash chain: proof that you submitted it and when, not that anything behind it ' +
      'happened. Permanent and public, your handle and the label included.',
    operation: 'create_receipt',
    effect: 'adds',
    headers: ['idempotency_key'],
    notes: { subject_sha256: 'SHA-256, made by you, of what the receipt is about: 64 lowercase hex characters.' },
  },
  {
    name: 'service_receipt_get',
    title: 'Get a receipt',
    about: 'Returns one receipt with a proof that it is in the chain. Receipts are public and permanent.',
    operation: 'get_receipt',
    effect: 'reads',
    notes: {
      serial: 'Number of the receipt in the chain.',
      tree_size: 'Prove that the chain of this size holds it; when left out, the chain up to its head.',
    },
  },
  {
    name: 'service_receipt_verify',
    title: 'Verify a receipt',
    about:
      'Checks signature, key and hash of a receipt that you pass in, receipts of paid verifications included. To ' +
      'check without trusting this service, pin its keys and check offline.',
    operation: 'verify_receipt',
    effect: 'reads',
    meta: REPORT_VIEW,
    notes: {
      attestation: 'The receipt itself, with all of its 12 members.',
      inclusion: 'Proof that it is in the tree, as service_receipt_get returns it.',
      checkpoint: 'Signed checkpoint of that tree, as service_receipt_get returns it.',
      envelope: 'Of the receipt of a paid verification.',
      canonical_envelope_base64: 'Of the receipt of a paid verification.',
    },
  },
  {
    name: 'service_receipt_list',
    title: 'List receipts',
    about: 'Lists the receipts that the account submitted, newest first.',
    operation: 'list_receipts',
    effect: 'reads',
    notes: { limit: 'Maximum number of receipts.' },
  },
  {
    name: 'service_chain_head',
    title: 'Head of the chain',
    about:
      'Returns the newest position of the hash chain with its signed checkpoint, which you can pin. Every key that ' +
      'ever signed is in the resource service://keys.',
    operation: 'get_chain_head',
    effect: 'reads',
  },
  {
    name: 'service_chain_export',
    title: 'Export the chain',
    about: 'Returns consecutive receipts, at most 1000, oldest first, enough to verify them offline.',
    operation: 'get_chain',
    effect: 'reads',
    notes: {
      from: 'First serial; 1 when left out.',
      to: 'Last serial; when left out, as far as 1000 receipts or the head allow.',
    },
  },
  {
    name: 'service_chain_verify',
    title: 'Verify the chain',
    about: 'Recomputes hashes, links and signatures over a range of the stored chain and reports the first break.',
    operation: 'verify_chain',
    effect: 'reads',
    notes: { from: 'First serial.', to: 'Last serial.' },
  },
  {
    name: 'service_watchdog_put',
    title: 'Create or change a watchdog',
    about:
      'Creates a watchdog, or changes the one of this name. When no heartbeat comes within interval_s plus grace_s, it ' +
      'sends a signed alert to webhook_url, once per outage; the interval starts now. webhook_secret is returned once, ' +
      'at creation. A watchdog exists until it is deleted.',
    operation: 'put_watchdog',
    effect: 'sets',
    notes: {
      ...WATCHDOG,
      interval_s: 'Seconds between heartbeats.',
      grace_s: 'Seconds of grace; when left out, the larger of 5 and a tenth of interval_s.',
      webhook_url: 'Public HTTPS address that alerts are sent to.',
      alert_after: 'Number of missed intervals after which it alerts.',
      remind_every_s: 'Seconds between reminders while it is down; null for none.',
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
    notes: { ...WATCHDOG, paused: 'true pauses, false resumes.', until: 'When it resumes by itself; null for never.' },
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
      'Reports to a watchdog that all is well, which moves its deadline to a full interval from now; or, with status ' +
      'fail, that something went wrong, which alerts at once.',
    operation: 'send_heartbeat',
    effect: 'sets',
    notes: {
      ...WATCHDOG,
      status: 'fail: the alert is sent at once.',
      note: 'At most 200 characters, sent with an alert.',
    },
  },
  {
    name: 'service_journal_put',
    title: 'Write a journal slot',
    about:
      'Stores bytes in a slot, replacing what was there, until they are replaced or deleted. if_match keeps ' +
      'you from overwriting a newer write.',
    operation: 'put_journal_slot',
    effect: 'destroys',
    headers: ['if_match', 'if_none_match'],
    bytes: { member: 'data', limit: MAX_SLOT_BYTES },
  },
  {
    name: 'service_journal_get',
    title: 'Read a journal slot',
    about: 'Returns the exact bytes of a slot in base64, with their SHA-256.',
    operation: 'read_journal_slot',
    effect: 'reads',
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
