// The operator's commands for keys and chain. Each prints its findings and answers the exit status.
import { z } from 'zod'
import type { Config } from '../config.ts'
import type { Database } from '../db/pool.ts'
import { auditChain, type SignatureMode } from './audit.ts'
import { KEY_USES, keptSeed } from './keys.ts'
import { rotateKey } from './rotation.ts'

export async function rotate(
  db: Database,
  config: Pick<Config, 'signingSeed' | 'dataDir'>,
  origin: string,
  given: string,
): Promise<number> {
  const { data: use } = z.enum(KEY_USES).safeParse(given)
  if (!use) {
    console.error(`"${given}" is not one of ${KEY_USES.join(', ')}.`)
    return 2
  }
  const seed = config.signingSeed ?? keptSeed(config.dataDir)
  const { retired, record, introduction } = await rotateKey(db, seed, use, { origin, now: Date.now })
  console.log(
    `key ${retired} is retired; key ${record.key_id} takes its place, introduced by receipt ${introduction.serial}`,
  )
  console.log(`${record.key_id}:${record.pubkey_hex}`)
  console.log('Running processes take it up with the next receipt they make. Tell those who pin keys.')
  return 0
}

const MODES = new Map<string, SignatureMode>([
  ['links', 'ends'],
  ['signatures', 'every'],
])

export async function verifyChain(db: Database, mode: string): Promise<number> {
  const signatures = MODES.get(mode)
  if (!signatures) {
    console.error(`"${mode}" is not one of ${[...MODES.keys()].join(', ')}.`)
    return 2
  }
  const progress = process.stderr.isTTY
    ? (serial: number, head: number) =>
        void process.stderr.write(`\r${serial} of ${head}${serial === head ? '\n' : ''}`)
    : undefined
  const { to, faults, signatures: checked } = await auditChain(db, { signatures, onProgress: progress })
  for (const [name, text] of faults) console.log(`FAIL ${name}: ${text}`)
  console.log(
    `${faults.size === 0 ? 'ok  ' : 'FAIL'} ${to} receipts: every hash, link and tree node, ${checked} signatures`,
  )
  return faults.size === 0 ? 0 : 1
}
