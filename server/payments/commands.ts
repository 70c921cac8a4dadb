// The operator's commands about payments: npm run cli -- payments <...>
import { z } from 'zod'
import type { Config } from '../config.ts'
import { type Database, transact } from '../db/pool.ts'
import { findRequestPayment } from './known-payments.ts'
import { exportLedger, findUnresolved, type LedgerEntry, listEntries, readLedger, type Unresolved } from './ledger.ts'
import { type Reconciliation, reconcile } from './reconciliation.ts'

interface PaymentCommand {
  takes?: string[]
  about: string
  /** Answers the exit code: 0 if there is nothing to do. @param call its arguments, and whether it prints JSON */
  run(db: Database, config: Config, call: { args: readonly string[]; json: boolean }): Promise<number>
}

export const paymentCommands: Record<string, PaymentCommand> = {
  'payments list-unresolved': {
    about: 'List payments that may have been charged and whose outcome is open, and for how long.',
    async run(db, _config, { json }) {
      const found = await findUnresolved(db)
      if (json) printJson(found)
      else printUnresolved(found)
      return found.length === 0 ? 0 : 1
    },
  },
  'payments show': {
    takes: ['request-id'],
    about: 'Show the payments of one request.',
    async run(db, _config, { args: [id = ''] }) {
      const row = z.uuid().safeParse(id).success ? await findRequestPayment(db, id) : null
      if (!row) {
        console.error('There is no such request.')
        return 1
      }
      const entries = await transact(db, (tx) => listEntries(tx, id), { readOnly: true })
      const { state, changed_at, payment } = row
      printJson({ request_id: id, state, changed_at, payment, ledger: entries })
      return 0
    },
  },
  'payments reconcile': {
    about: 'Compare the ledger with the chain; exit 1 if they differ.',
    async run(db, config, { json }) {
      await using opened = new AsyncDisposableStack()
      const isOffline = config.paymentMode === 'offline'
      const result = await reconcile(db, await openChains(config, opened), { isOffline })
      if (json) printJson(result)
      else for (const line of describeReconciliation(result)) console.log(line)
      return result.differs.length + result.unbooked.filter((income) => income.priced).length === 0 ? 0 : 1
    },
  },
  'payments export': {
    about: 'Print the ledger as CSV, or as JSON.',
    async run(db, _config, { json }) {
      if (json) await writeEntries(db)
      else for await (const line of exportLedger(db)) process.stdout.write(`${line}\r\n`)
      return 0
    },
  },
}

/** An array with an entry a line. The ledger may be too large to be held at once. */
async function writeEntries(db: Database) {
  let before = '[\n'
  for await (const entry of readLedger(db)) {
    process.stdout.write(`${before}${JSON.stringify(entry)}`)
    before = ',\n'
  }
  process.stdout.write(before === '[\n' ? '[]\n' : '\n]\n')
}

/** Amounts of a chain are written in decimal digits. */
function printJson(value: unknown) {
  console.log(JSON.stringify(value, (_name, member) => (typeof member === 'bigint' ? String(member) : member), 2))
}

function printUnresolved(found: readonly Unresolved[]) {
  for (const { request_id, state, open_seconds, network, payer, nonce, transaction, valid_before } of found)
    console.log(
      `${request_id} ${state} for ${open_seconds} s on ${network}\n    payer ${payer} nonce ${nonce}\n    ` +
        `valid until ${new Date(valid_before * 1000).toISOString()}, transaction ${transaction ?? 'not known'}`,
    )
  console.log(found.length === 0 ? 'none: every payment is settled, or known to be unpaid' : `${found.length} open`)
}

async function openChains(config: Config, opened: AsyncDisposableStack) {
  if (config.paymentMode === 'offline') return []
  const { openNetworks } = await import('./facilitators/live-setup.ts')
  return openNetworks(config, opened)
}

function describeReconciliation(result: Reconciliation): string[] {
  const { agrees, confirmed, differs, open, offline, unbooked, unread } = result
  return [
    `${agrees} entries agree with the chain, ${differs.length} differ, ${open.length} are still open, ` +
      `${offline} are simulated`,
    ...(confirmed > 0
      ? [`${confirmed} of them rested on the facilitator's report only and are now confirmed by the chain`]
      : []),
    ...differs.map((entry) => `DIFFERS ${describeEntry(entry)}`),
    ...open.map((entry) => `open    ${describeEntry(entry)}${entry.proof ? `, booked as ${entry.proof}` : ''}`),
    ...unread.map((network) => `income on ${network} was not read; only the entries were compared`),
    ...unbooked.map(
      ({ network, transaction, from, amount, priced }) =>
        `${priced ? 'NO ENTRY' : 'income  '} ${network} ${transaction}: ${amount} from ${from}`,
    ),
  ]
}

function describeEntry({ entry, outcome, request_id, network, transaction, payer, nonce }: LedgerEntry): string {
  return `entry ${entry}: ${outcome}, request ${request_id}, ${network} ${transaction ?? `${payer} ${nonce}`}`
}
