// `countersign replay`: redoes a verification offline, from the package of evidence and the result. One line for each step.
import { checkVerifierKey, MissingError, readTree, UsageError, visible } from '../arguments.ts'
import { readVerifierKey } from '../chain/checkpoint.ts'
import {
  type PageReader,
  type Replay,
  type ReplayOptions,
  replayPackage,
  type StampOptions,
  type Step,
} from '../evidence/replay.ts'
import { Unchecked } from '../evidence/steps.ts'
import type { PurchaseResult } from '../result.ts'
import { openTimestampVerifier } from '../timestamp.ts'
import type { PinnedKey } from '../verification.ts'
import { certificateCheck } from './certificate-check.ts'
import { command } from './command.ts'
import { checkNew, writeNew } from './files.ts'
import { readInput } from './input-file.ts'
import { json, paint, print } from './output.ts'
import { ownVersion } from './own-version.ts'
import { PINS, readTrusted } from './pins.ts'
import { writeStatement } from './replay-statement.ts'
import { signatureCheck } from './signature-check.ts'
import { loadPageReader, recompute } from './verify/recompute.ts'
import { systemRoots } from './verify/timestamps.ts'

export const replay = command({
  summary: 'redo a verification offline, from its evidence package and its result',
  operands: ['PACKAGE', 'RESULT'],
  usage: '(--keys FILE | --pin KEYID:HEX)...',
  about: `Goes from the bytes as they crossed the connection to the text, the verdict, the quotes, the digests, the receipts and
the chain, and prints a line for each step: ok, FAIL with what differs, or -- for what was not checked and why. A step
that rests on one that fails is not checked. Text and verdict are made again by the package countersign-verifier, which
must be installed beside this one. Nothing leaves this machine.

PACKAGE is what /api/agent/v1/verify-source/{request_id}/evidence gives, with the recovery token as bearer. RESULT is
the completed result, the very bytes or the same JSON. With --keys of a whole /v1/keys the heads of the log are checked
too; with --pin give --vkey for them.

--statement writes the technical part of a certification (FRE 902(13), 902(14)): what was captured, when, by what, the
digests, the receipts and the outcome of each step. A person completes and signs it. It is not legal advice.`,
  examples: [
    'countersign replay package.wacz result.json --keys keys.json',
    'countersign replay package.wacz result.json --keys keys.json --statement statement.md',
    'countersign replay package.wacz result.json --pin 1:<64 hex characters> --vkey <verifier key> --json | jq .steps',
  ],
  exitStatus: '0 all steps hold, 1 something does not, 2 wrong usage, or a step lacks what it needs on this machine.',
  options: {
    ...PINS,
    vkey: { type: 'string', value: 'VKEY', help: "the trusted verifier key of the log's checkpoints" },
    tree: { type: 'string', value: 'SIZE:ROOT', help: 'a tree that was pinned before; both receipts must be in it' },
    'timestamp-ca': {
      type: 'string',
      value: 'FILE',
      help: 'trusted roots of time-stamp authorities (PEM); else those of Node',
    },
    weights: {
      type: 'string',
      value: 'DIR',
      help: 'a folder with the weights of the verifier; else those of the package',
    },
    statement: {
      type: 'string',
      isWritten: true,
      value: 'FILE',
      help: 'write the technical part of a certification into a new file',
    },
  },
  async run([packageFile = '', resultFile = ''], options) {
    const keys = await readTrusted(options)
    checkVerifierKey(options.vkey)
    if (packageFile === '-' && resultFile === '-') throw new UsageError('Standard input is either package or result.')
    const { statement } = options
    await checkNew(statement)
    const [packaged, result] = [await readInput(packageFile), await readInput(resultFile)]
    if (isArchive(result) && !isArchive(packaged))
      throw new UsageError(
        `The two are swapped: ${resultFile} is a package, and ${packageFile} is not. It is: countersign replay ${resultFile} ${packageFile}`,
      )
    const document = result.toString()
    const replayed = await replayPackage(packaged, result, {
      keys,
      vkey: options.vkey ?? listedVerifierKey(keys),
      tree: options.tree === undefined ? undefined : readTree('--tree', options.tree),
      signatureCheck,
      certificateCheck,
      reader: await orMissing<PageReader>(loadPageReader),
      timestamps: await stampsOf(options['timestamp-ca']),
      verdictCheck: (given) => verdictOf(given, document, options.weights),
    } satisfies ReplayOptions)
    // A statement may already be signed, so no file is replaced.
    if (statement !== undefined) await writeNew(statement, writeStatement(replayed, ownSoftware()))
    const { ok, differs, steps } = replayed
    if (options.json) print(json({ ok, steps }))
    else printSteps(replayed)
    return ok ? 0 : differs ? 1 : 2
  },
})

/** Whether it begins as a ZIP archive does; JSON never begins so. */
function isArchive(bytes: Buffer): boolean {
  return bytes.subarray(0, 4).equals(Buffer.from('PK\x03\x04'))
}

/** The verifier key beside a trusted checkpoint key, as /v1/keys lists it; it must be of that key. Others in `keys` count beside it. */
function listedVerifierKey(keys: readonly (PinnedKey & { vkey?: unknown })[]): string | undefined {
  const listed = keys.find(
    ({ use, vkey, status }) => use === 'checkpoint' && typeof vkey === 'string' && status !== 'compromised',
  )
  if (!listed) return undefined
  const vkey = listed.vkey as string
  checkVerifierKey(vkey)
  const isSame = Buffer.from(readVerifierKey(vkey).publicKey).toString('hex') === listed.pubkey_hex.toLowerCase()
  if (!isSame) throw new UsageError(`The vkey of key ${listed.key_id} in --keys is of another key.`)
  return vkey
}

async function orMissing<T>(load: () => Promise<T>): Promise<T | Unchecked> {
  try {
    return await load()
  } catch (error) {
    if (error instanceof MissingError) return new Unchecked(error.message, 'missing')
    throw error
  }
}

async function stampsOf(ca: string | undefined): Promise<StampOptions> {
  const roots = ca === undefined ? systemRoots() : (await readInput(ca)).toString()
  return { open: () => openTimestampVerifier(roots), isGiven: ca !== undefined }
}

async function verdictOf({ methodology_version }: PurchaseResult, document: string, weights: string | undefined) {
  if (!/ local-\d/.test(methodology_version))
    return new Unchecked(
      `another assessor gave the verdict (${methodology_version}); only that of the local verifier can be made again`,
    )
  return orMissing(() => recompute(document, weights))
}

const ownSoftware = () => ({
  name: `countersign ${ownVersion()}`,
  runtime: `Node ${process.versions.node} with OpenSSL ${process.versions.openssl}, on ${process.platform} ${process.arch}`,
  at: new Date(),
})

function printSteps({ ok, differs, steps }: Replay): void {
  for (const step of steps) print(`${lineOf(step)}\n`)
  const count = (state: Step['state']) => steps.filter((step) => step.state === state).length
  const held = `${count('holds')} of ${steps.length} steps`
  const left = count('not_checked')
  if (ok)
    print(`${paint('green', 'all hold')}: ${held}${left > 0 ? `; for the other ${left} nothing was given` : ''}\n`)
  else if (differs)
    print(`${paint('red', 'BAD')}: ${held} hold, ${count('differs')} do not, ${left} were not checked\n`)
  else
    print(
      `${paint('yellow', 'incomplete')}: ${held} hold, ${left} were not checked, and nothing that differs was found\n`,
    )
}

function lineOf({ name, proves, state, detail }: Step): string {
  const more = detail === undefined ? '' : visible(detail)
  if (state === 'holds') return `${paint('green', 'ok  ')} ${name}: ${proves}${more && ` (${more})`}`
  if (state === 'differs') return `${paint('red', 'FAIL')} ${name}: ${more}`
  return `${paint('yellow', '--  ')} ${name}: not checked: ${more}`
}
