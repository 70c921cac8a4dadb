// The operator's commands for keys and chain. Each prints its findings and answers the exit status.
import { z } from 'zod'
import type { Config } from '../config.ts'
import type { Database } from '../db/pool.ts'
import { auditChain, type SignatureMode } from './audit.ts'
import { KEY_USES, keptSeed } from './keys.ts'
import { rotateKey } from './rotation.ts'

/** How a command was called. */
interface ChainCall {
  args: readonly string[]
  /** Print JSON and nothing else on stdout. */
  json: boolean
  /** Asks a person; true to go on. */
  confirm(question: string): Promise<boolean>
}

/** @param origin the name of the log */
export async function rotate(
  db: Database,
  config: Pick<Config, 'signingSeed' | 'dataDir'>,
  origin: string,
  { args: [given = ''], json, confirm }: ChainCall,
): Promise<number> {
  const { data: use } = z.enum(KEY_USES).safeParse(given)
  if (!use) return refuse(`"${given}" is not one of ${KEY_USES.join(', ')}.`)
  const question =
    `Replace the ${use} key? The present key never signs again; tell everyone who has pinned it. ` +
    'This cannot be undone.'
  if (!(await confirm(question))) return refuse('Nothing was changed.')
  const seed = config.signingSeed ?? keptSeed(config.dataDir)
  const { retired, record, introduction } = await rotateKey(db, seed, use, { origin, now: Date.now })
  if (json) {
    printJson({ retired, key_id: record.key_id, pubkey_hex: record.pubkey_hex, introduced_by: introduction.serial })
    return 0
  }
  console.log(
    `key ${retired} is retired; key ${record.key_id} takes its place, introduced by receipt ${introduction.serial}`,
  )
  console.log(`${record.key_id}:${record.pubkey_hex}`)
  console.log('Running processes use it from the next receipt that they make. Tell everyone who has pinned the key.')
  return 0
}

function refuse(message: string): number {
  console.error(message)
  return 2
}

function printJson(value: unknown) {
  console.log(JSON.stringify(value, null, 2))
}

const MODES = new Map<string, SignatureMode>([
  ['links', 'ends'],
  ['signatures', 'every'],
])

export async function verifyChain(
  db: Database,
  { args: [mode = ''], json }: Pick<ChainCall, 'args' | 'json'>,
): Promise<number> {
  const signatures = MODES.get(mode)
  if (!signatures) return refuse(`"${mode}" is not one of ${[...MODES.keys()].join(', ')}.`)
  const progress = process.stderr.isTTY
    ? (serial: number, head: number) =>
        void process.stderr.write(`\r${serial} of ${head}${serial === head ? '\n' : ''}`)
    : undefined
  const { to, faults, signatures: checked } = await auditChain(db, { signatures, onProgress: progress })
  if (json) {
    printJson({ receipts: to, signatures: checked, faults: Object.fromEntries(faults) })
    return faults.size === 0 ? 0 : 1
  }
  for (const [name, text] of faults) console.log(`FAIL ${name}: ${text}`)
  console.log(
    `${faults.size === 0 ? 'ok  ' : 'FAIL'} ${to} receipts: every hash, link and tree node, ${checked} signatures`,
  )
  return faults.size === 0 ? 0 : 1
}
