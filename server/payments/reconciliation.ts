// The ledger held against the chain: every entry that the chain has not confirmed yet, and the money that came in between
// without an entry. Reads the chain, and writes what it said into the ledger.
import type { Database } from '../db/pool.ts'
import { PRICE } from '../interface/payment.ts'
import { type LedgerEntry, readLedger, recordVerdict } from './ledger.ts'
import type { Income, PaymentNetwork } from './live.ts'

export interface Reconciliation {
  agrees: number
  /** Those of them that were booked on a facilitator's word, and that the chain has shown now. */
  confirmed: number
  differs: LedgerEntry[]
  /** Too early to say, or on a chain that does not answer or is not configured. */
  open: LedgerEntry[]
  /** Simulated, so that there is nothing to compare. */
  offline: number
  /** Payments to us that are in no entry. `priced`: of exactly our price, so likely a purchase that went wrong. */
  unbooked: (Income & { network: string; priced: boolean })[]
  /** Networks whose income could not be read, so that money without an entry would not be seen. */
  unread: string[]
}

export async function reconcile(db: Database, networks: readonly PaymentNetwork[]): Promise<Reconciliation> {
  const result: Reconciliation = {
    agrees: 0,
    confirmed: 0,
    differs: [],
    open: [],
    offline: 0,
    unbooked: [],
    unread: [],
  }
  const shown: LedgerEntry[] = []
  const booked = new Set<string>()
  for await (const entry of readLedger(db)) {
    const says = entry.mode === 'offline' ? 'offline' : await audit(db, entry, networks)
    if (says === 'agrees' || says === 'offline') result[says]++
    else result[says].push(entry)
    if (entry.transaction) booked.add(entry.transaction)
    if (entry.transaction && says === 'agrees') shown.push(entry)
    if (says === 'agrees' && isWord(entry)) result.confirmed++
  }
  for (const network of networks) {
    const own = shown.filter((entry) => entry.network === network.id).map((entry) => entry.transaction ?? '')
    const unbooked = await findUnbooked(network, own, booked)
    if (unbooked) result.unbooked.push(...unbooked)
    else result.unread.push(network.id)
  }
  return result
}

function isWord({ proof, chain_says }: LedgerEntry): boolean {
  return chain_says !== 'agrees' && (proof === 'facilitator' || proof === 'unconfirmed')
}

async function audit(db: Database, entry: LedgerEntry, networks: readonly PaymentNetwork[]) {
  if (entry.chain_says === 'agrees') return 'agrees'
  const network = networks.find((candidate) => candidate.id === entry.network)
  const found = await network?.audit(entry).catch(() => null)
  if (!found) return 'open'
  return recordVerdict(db, entry.entry, found.agrees ? 'agrees' : 'differs', found.logIndex)
}

/** Between the first and the last payment that the chain confirms; null when it cannot be read. @param confirmed their transactions, in order */
async function findUnbooked(network: PaymentNetwork, confirmed: string[], booked: Set<string>) {
  const [first, last] = [confirmed[0], confirmed.at(-1)]
  if (first === undefined || last === undefined) return []
  const income = await network.income(first, last).catch(() => null)
  if (!income) return null
  return income
    .filter(({ transaction }) => !booked.has(transaction))
    .map((transfer) => ({ ...transfer, network: network.id, priced: transfer.amount === BigInt(PRICE.atomic) }))
}
