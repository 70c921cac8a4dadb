// Reconciliation of the ledger with the chains: checks every entry that a chain has not confirmed, finds income without an
// entry, and writes the verdicts into the ledger.
import type { Database } from '../db/pool.ts'
import { isPrice } from '../interface/price.ts'
import type { Income, PaymentNetwork } from './chains/payment-network.ts'
import { isSettledElsewhere, type LedgerEntry, readLedger, recordVerdict } from './ledger.ts'

export interface Reconciliation {
  agrees: number
  /** Entries among `agrees` that only the facilitator had reported until this run. */
  confirmed: number
  differs: LedgerEntry[]
  /** The chain cannot give a final answer yet, does not answer, or is not configured. */
  open: LedgerEntry[]
  /** Simulated payments, which have no chain. */
  offline: number
  /** Transfers to this service without an entry. `priced`: of exactly a price, so probably a purchase that went wrong. */
  unbooked: (Income & { network: string; priced: boolean })[]
  /** Networks whose income could not be read. */
  unread: string[]
}

/** @param isOffline the service is in offline mode: a payment that failed there has no mode in its entry, and no chain either */
export async function reconcile(
  db: Database,
  networks: readonly PaymentNetwork[],
  { isOffline = false } = {},
): Promise<Reconciliation> {
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
    const isSimulated = entry.mode === 'offline' || (isOffline && entry.mode === null)
    const says = isSimulated ? 'offline' : await audit(db, entry, networks)
    if (says === 'agrees' || says === 'offline') result[says]++
    else result[says].push(entry)
    if (entry.transaction) booked.add(entry.transaction)
    if (entry.transaction && says === 'agrees') shown.push(entry)
    if (says === 'agrees' && restsOnFacilitator(entry)) result.confirmed++
  }
  for (const network of networks) {
    const own = shown.filter((entry) => entry.network === network.id).map((entry) => entry.transaction ?? '')
    const unbooked = await findUnbooked(network, own, booked)
    if (unbooked) result.unbooked.push(...unbooked)
    else result.unread.push(network.id)
  }
  return result
}

function restsOnFacilitator({ proof, chain_says }: LedgerEntry): boolean {
  return chain_says !== 'agrees' && (proof === 'facilitator' || proof === 'unconfirmed')
}

async function audit(db: Database, entry: LedgerEntry, networks: readonly PaymentNetwork[]) {
  if (entry.chain_says === 'agrees') return 'agrees'
  // A payment that was free again and then settled for another request: the chain shows that one settlement.
  if (!entry.transaction && (await isSettledElsewhere(db, entry))) return recordVerdict(db, entry.entry, 'agrees', null)
  const network = networks.find((candidate) => candidate.id === entry.network)
  const found = await network?.audit(entry).catch(() => null)
  if (!found) return 'open'
  return recordVerdict(db, entry.entry, found.agrees ? 'agrees' : 'differs', found.logIndex)
}

/**
 * Income without an entry, between the first and the last confirmed payment; null if it cannot be read.
 * @param confirmed transactions of the confirmed payments, in order
 */
async function findUnbooked(network: PaymentNetwork, confirmed: string[], booked: Set<string>) {
  const [first, last] = [confirmed[0], confirmed.at(-1)]
  if (first === undefined || last === undefined) return []
  const income = await network.income(first, last).catch(() => null)
  if (!income) return null
  return income
    .filter(({ transaction }) => !booked.has(transaction))
    .map((transfer) => ({ ...transfer, network: network.id, priced: isPrice(transfer.amount) }))
}
