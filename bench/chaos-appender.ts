// A process of the chaos run: callers that append one receipt after the other and report each receipt they got. The report
// has only what the service answered, because a caller knows nothing else.
import { randomBytes } from 'node:crypto'
import { openDatabase } from '../server/db/pool.ts'
import { openChain, Refused } from '../server/receipts/chain.ts'
import { openSigner } from '../server/receipts/signer.ts'
import { openLog } from '../server/telemetry.ts'
import type { Acknowledged, AppenderOrder, AppenderReport } from './chaos-receipts.ts'

const GROUP = 50

process.once('message', (order: AppenderOrder) => {
  append(order).then(
    () => process.exit(),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
})

async function append({ databaseUrl, seedHex, callers }: AppenderOrder) {
  const log = openLog('fatal')
  const db = await openDatabase(databaseUrl, { maxConnections: 3 })
  db.on('error', (error) => log.debug({ err: error }))
  const chain = openChain(db, await openSigner(db, Buffer.from(seedHex, 'hex')), { origin: 'chaos.test/log' })
  process.send!({ acknowledged: [], failed: 0 } satisfies AppenderReport)
  const stopped = new AbortController()
  process.once('message', () => stopped.abort())
  const acknowledged: Acknowledged[] = []
  let failed = 0
  const report = () => process.send!({ acknowledged: acknowledged.splice(0), failed } satisfies AppenderReport)
  const call = async () => {
    while (!stopped.signal.aborted) {
      const subject = randomBytes(32).toString('hex')
      try {
        const appended = await chain.append({ subjectSha256: subject, label: null, requestedBy: 'chaos' })
        if (appended instanceof Refused) throw new Error('the receipt was refused')
        const { serial, receipt_hash } = appended.attestation
        acknowledged.push({ serial, receipt_hash, subject })
      } catch (error) {
        log.debug({ err: error })
        failed++
      }
      if (acknowledged.length >= GROUP) report()
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  await new Promise((sent) =>
    process.send!({ acknowledged: acknowledged.splice(0), failed } satisfies AppenderReport, sent),
  )
  await chain[Symbol.asyncDispose]()
}
