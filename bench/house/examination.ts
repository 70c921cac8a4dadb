// The checks after the run: the audit, the logs of the callers, the tables and the blockchain must agree.
import { runCliApart } from '../../test/cli-process.ts'
import type { AccountJournal, AcknowledgedWatchdog } from './accounts.ts'
import { type Buyer, PRICE_ATOMIC } from './buyers.ts'
import type { World } from './world.ts'

/** Ids of the alerts that arrived for each path, in the order in which each arrived first. */
export type Arrivals = ReadonlyMap<string, string[]>

export interface Evidence {
  world: World
  /** Of a process, for commands. */
  env: Record<string, string>
  buyers: Buyer[]
  accounts: AccountJournal
  arrivals: Arrivals
}

const MAX_LISTED = 8

/** Each violation in words, with a limited number of each kind. */
export async function examine(evidence: Evidence): Promise<string[]> {
  const checks = [
    audit,
    reconcile,
    comparePurchases,
    compareChain,
    compareReceipts,
    compareLeases,
    compareAlerts,
    compareSlots,
  ]
  const found: string[] = []
  for (const check of checks) {
    const breaches = await check(evidence)
    found.push(...breaches.slice(0, MAX_LISTED))
    if (breaches.length > MAX_LISTED) found.push(`${breaches.length - MAX_LISTED} more like it`)
  }
  return [...found, ...evidence.accounts.violations]
}

async function audit({ env }: Evidence): Promise<string[]> {
  const { code, stdout, stderr } = await runCliApart(env, 'audit', '--json', '--signatures')
  if (!stdout.trim()) return [`audit ended with ${code}: ${stderr}`]
  const { ok, faults } = JSON.parse(stdout) as {
    ok: boolean
    faults: { check: string; subject: string; detail: string }[]
  }
  return [
    ...faults.map(({ check, subject, detail }) => `audit: ${check}: ${subject}: ${detail}`),
    ...(ok === (code === 0) ? [] : [`audit said ok ${ok} and ended with ${code}`]),
  ]
}

/** The ledger and the chain, by the service's own command. */
async function reconcile({ env }: Evidence): Promise<string[]> {
  const { code, stdout, stderr } = await runCliApart(env, 'payments', 'reconcile')
  return code === 0 ? [] : [`payments reconcile ended with ${code}: ${stdout.slice(-400)} ${stderr.slice(-400)}`]
}

interface RequestRow {
  id: string
  state: string
  charges: number
  payer: string | null
}

async function comparePurchases({ world: { admin }, buyers }: Evidence): Promise<string[]> {
  const { rows } = await admin.query<RequestRow>(
    `select r.id, r.state, count(l.entry) filter (where l.outcome = 'settled')::int charges,
       max(lower(l.payer)) filter (where l.outcome = 'settled') payer
     from verification_requests r left join payment_ledger l on l.request_id = r.id group by r.id, r.state`,
  )
  const byId = new Map(rows.map((row) => [row.id, row]))
  const found: string[] = []
  const seen = new Set<string>()
  for (const { address, journal } of buyers)
    for (const { key, bought, code, isRefused, isHostile, differs } of journal) {
      if (!bought) {
        if (!isRefused) found.push(`the purchase ${key} came to no end: ${code}`)
        else if (!isHostile) found.push(`the purchase ${key} was refused: ${code}`)
        continue
      }
      const row = byId.get(bought.requestId)
      if (seen.has(bought.requestId)) found.push(`request ${bought.requestId} answered two keys`)
      seen.add(bought.requestId)
      if (differs) found.push(`a repeat of ${key} got other bytes`)
      if (row?.state !== 'completed') found.push(`request ${bought.requestId} was bought and is ${row?.state}`)
      if (row?.charges !== 1) found.push(`request ${bought.requestId} was charged ${row?.charges} times`)
      if (row?.payer && row.payer !== address.toLowerCase()) found.push(`${bought.requestId} was paid by ${row.payer}`)
    }
  for (const { id, state, charges } of rows) {
    if (seen.has(id)) continue
    if (charges > 0) found.push(`request ${id} is ${state}, was charged, and no buyer got it`)
    else if (!RESTING.has(state)) found.push(`request ${id} is ${state}, and no buyer waits for it`)
  }
  return found
}

/** Final states of requests that were not charged. */
const RESTING: ReadonlySet<string> = new Set(['quoted', 'expired', 'unpaid', 'failed'])

async function compareChain({ world: { chain, payTo }, buyers }: Evidence): Promise<string[]> {
  const found: string[] = []
  let total = 0n
  for (const { address, funds, journal } of buyers) {
    const due = BigInt(journal.filter(({ bought }) => bought).length) * PRICE_ATOMIC
    const spent = funds - (await chain.balanceOf(address))
    total += due
    if (spent !== due) found.push(`buyer ${address} spent ${spent} on the chain for goods of ${due}`)
  }
  const income = await chain.balanceOf(payTo)
  if (income !== total) found.push(`the chain has ${income} of income for goods of ${total}`)
  return found
}

async function compareReceipts({ world: { admin }, buyers, accounts }: Evidence): Promise<string[]> {
  const { rows } = await admin.query<{ serial: string; hash: string; subject: string; early: boolean }>(
    `select serial, encode(receipt_hash, 'hex') hash, encode(subject_sha256, 'hex') subject,
       ts_ms < lag(ts_ms, 1, ts_ms) over (order by serial) early from receipts`,
  )
  const bySerial = new Map(rows.map((row) => [Number(row.serial), row]))
  const counts = new Map<string, number>()
  for (const { subject } of rows) counts.set(subject, (counts.get(subject) ?? 0) + 1)
  const acknowledged = [
    ...accounts.receipts,
    ...accounts.leases.flatMap(({ receipts }) => receipts),
    ...buyers.flatMap(({ journal }) => journal.flatMap(({ bought }) => bought ?? [])),
  ]
  return [
    ...acknowledged
      .filter(({ serial, receiptHash }) => bySerial.get(serial)?.hash !== receiptHash)
      .map(({ serial }) => `receipt ${serial} was acknowledged and is not in the chain`),
    ...accounts.receipts
      .filter(({ subject }) => counts.get(subject) !== 1)
      .map(({ subject, serial }) => `what receipt ${serial} attests has ${counts.get(subject)} receipts`),
    ...accounts.sequences.flatMap((serials) =>
      serials.flatMap((serial, n) => (n > 0 && serial <= serials[n - 1]! ? [`receipt ${serial} is out of order`] : [])),
    ),
    ...rows.filter(({ early }) => early).map(({ serial }) => `receipt ${serial} is dated before the one before it`),
  ]
}

async function compareLeases({ world: { admin }, accounts }: Evidence): Promise<string[]> {
  const { rows } = await admin.query<{ id: string; revoked: boolean; ordered: boolean }>(
    `select id, revoked_ms is not null revoked,
       grant_serial < coalesce(renew_serial, grant_serial + 1) and
       coalesce(renew_serial, grant_serial) < coalesce(revoke_serial, grant_serial + 2147483647) ordered from leases`,
  )
  const byId = new Map(rows.map((row) => [row.id, row]))
  const extra = rows.length - accounts.leases.length
  return [
    ...accounts.leases.filter(({ id }) => !byId.has(id)).map(({ id }) => `lease ${id} was granted and is not there`),
    ...accounts.leases
      .filter(({ id, isRevoked }) => isRevoked && !byId.get(id)?.revoked)
      .map(({ id }) => `lease ${id} was revoked and is not`),
    ...rows.filter(({ ordered }) => !ordered).map(({ id }) => `the receipts of lease ${id} are out of order`),
    ...(extra > accounts.unknownGrants
      ? [`${extra} leases that no account got, of ${accounts.unknownGrants} possible`]
      : []),
  ]
}

async function compareAlerts({ world: { admin }, accounts, arrivals }: Evidence): Promise<string[]> {
  const { rows } = await admin.query<{ name: string; id: string; type: string; state: string }>(
    `select w.name, a.id, a.type, a.state from alerts a join watchdogs w on w.webhook_id = a.webhook_id order by a.event_seq`,
  )
  const byName = Map.groupBy(rows, ({ name }) => name)
  return accounts.dogs.flatMap((dog) => {
    const alerts = byName.get(dog.name) ?? []
    const types = alerts.map(({ type }) => type.replace('watchdog.', ''))
    const got = arrivals.get(`/${dog.name}`) ?? []
    const undelivered = alerts.filter(({ state }) => state !== 'delivered')
    return [
      ...(isExpected(dog, types) ? [] : [`watchdog ${dog.name} (${dog.kind}) raised ${types.join(', ') || 'nothing'}`]),
      ...undelivered.map(({ id, state }) => `alert ${id} of ${dog.name} is ${state}`),
      ...(got.join() === alerts.map(({ id }) => id).join() ? [] : [`the receiver of ${dog.name} got other alerts`]),
    ]
  })
}

function isExpected({ kind, isUnsure, isDone }: AcknowledgedWatchdog, types: string[]): boolean {
  const alternate = types.every((type, n) => type === (n % 2 ? 'recovered' : 'missed'))
  if (isUnsure || !isDone) return alternate
  return types.join() === (kind === 'silent' ? 'missed' : 'missed,recovered')
}

async function compareSlots({ world: { admin }, accounts }: Evidence): Promise<string[]> {
  const { rows } = await admin.query<{ account_id: string; sha256: string }>(
    `select account_id, encode(sha256, 'hex') sha256 from journal_slots`,
  )
  return accounts.slots.flatMap(({ account: { accountId }, sha256 }) => {
    const now = rows.find(({ account_id }) => account_id === accountId)?.sha256
    if (sha256.length === 0 || (now && sha256.includes(now))) return []
    return [`slot of ${accountId} does not hold what was written last`]
  })
}
