// The meaning of those members of requests whose schemas have no description. They stand here and not in the schemas, because the tools
// of MCP are made from the schemas, and every host sends all tools to its model.

const REQUEST = 'The id of the purchase: `request_id` of its answers.'
const LEASE = 'The id of the lease: `lease_id` of the answer that granted it.'
const PER_PAGE = 'The most entries in one answer.'

/** By `operation.member`, or by the name of the member alone where it means the same in every operation. */
const MEANINGS: Readonly<Record<string, string>> = {
  options: 'What you accept: the age of the reading, and the price.',
  request_id: REQUEST,
  lease_id: LEASE,
  limit: PER_PAGE,
  'create_api_key.kind': 'What the key may do: `full` everything, `read_only` read, `heartbeat` send heartbeats.',
  'create_api_key.label': 'Your own name for the key, to tell it from others.',
  'revoke_api_key.id': 'The id of the key: `id` in the list of API keys.',
  'revoke_api_key.after_s':
    'Seconds until the key ends, so that its successor can be put in place; without it the key ends at once.',
  'create_checkout.tier': 'The tier to subscribe to.',
  'list_leases.state': '`active`: only leases that are neither expired nor revoked.',
  'create_receipt.subject_sha256': 'The SHA-256 of what the receipt is for, which stays with you, in lowercase hex.',
  'create_receipt.label': 'A name for the receipt. Public, like the whole chain: never put private data here.',
  'get_receipt.serial': 'The number of the receipt in the chain.',
  'get_receipt.tree_size': 'The size of the chain that the proof is for; without it that of the head.',
  'verify_receipt.attestation': 'The receipt, with all its members.',
  'verify_receipt.inclusion':
    'The proof that the receipt is in the chain, as `get_receipt` returns it; it needs `checkpoint`.',
  'verify_receipt.checkpoint': 'The signed head of the chain that `inclusion` leads to.',
  'verify_receipt.envelope': 'What the receipt of a purchase signs: `receipt.envelope` of the result.',
  'verify_receipt.canonical_envelope_base64':
    'The bytes of `envelope` that were hashed: `receipt.canonical_envelope_base64` of the result.',
  'get_consistency.from': 'The number of receipts in the older head.',
  'get_consistency.to': 'The number of receipts in the newer head; without it the head of now.',
  'get_quote_check.check_id': 'The id of the check: the end of `Location` in the answer that began it.',
  'put_citation_watch.every_hours': 'Hours between two readings of the page.',
  'put_citation_watch.request_id':
    'The purchase that the quote is from. Needed for a new watch, with the next two members.',
  'put_citation_watch.recovery_token': 'The recovery token of that purchase: it proves that the result is yours.',
  'put_citation_watch.evidence_id': 'The quote to watch: `evidence_id` in the `evidence` of the result.',
  'redeliver_citation_alert.id': 'The id of the alert: `id` in the list of alerts.',
  'redeliver_alert.id': 'The id of the alert: `id` in the list of alerts.',
  'put_watchdog.interval_s':
    'Seconds between two heartbeats: as often as your job runs. Without one for longer the watchdog is late.',
  'put_watchdog.grace_s':
    'Seconds after a missed heartbeat until the alert; without it the larger of 5 and a tenth of `interval_s`.',
  'put_watchdog.alert_after': 'The number of intervals without a heartbeat after which the alert is due.',
  'put_watchdog.remind_every_s': 'Seconds between two reminders while the watchdog is down; null for none.',
  'send_heartbeat.status': '`ok`: the job ran. `fail`: it ran and failed, so the alert is sent at once.',
  'send_heartbeat.note': 'A line of your own, which is shown with the watchdog and in its alerts.',
  'pause_watchdog.paused': 'true pauses the watchdog, false resumes it.',
}

/** A sentence; undefined where the name is not in the table. */
export function meaningOf(operation: string, member: string): string | undefined {
  return MEANINGS[`${operation}.${member}`] ?? MEANINGS[member]
}
