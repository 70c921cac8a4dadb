// Replays an evidence package offline: from the bytes as they crossed the connection to the text, the result, the receipts and the
// chain, one step after the other. Pure: what needs a platform or a package is given to it.

import { sha256Hex } from '../bytes.ts'
import type { Attestation } from '../chain/attestation.ts'
import { readVerifierKeys } from '../chain/checkpoint.ts'
import { type ReceiptOptions, verifyReceipt } from '../chain/receipt.ts'
import { type Check, Note } from '../checks.ts'
import { canonicalJson, parseJson } from '../json.ts'
import type { PurchaseResult } from '../result.ts'
import { type Captured, type CertificateCheck, takeConnections, takeHops } from './capture-steps.ts'
import {
  type Connection,
  fileOf,
  MANIFEST,
  type Manifest,
  type ProvedReceipt,
  RECEIPTS,
  readManifest,
  readReceipts,
} from './manifest.ts'
import { checkFiles } from './package-files.ts'
import { Fault, type Step, Steps, Unchecked } from './steps.ts'
import {
  type PageReader,
  requireAll,
  takeObservation,
  takeQuotes,
  takeResult,
  takeText,
  takeVerdict,
  type VerdictCheck,
} from './text-steps.ts'
import { judgeTimestamps, type StampOptions } from './timestamp-step.ts'
import { type Files, readZip } from './zip.ts'

export type { CertificateCheck } from './capture-steps.ts'
export type { Step, StepState } from './steps.ts'
export type { PageReader, VerdictCheck } from './text-steps.ts'
export type { StampOptions } from './timestamp-step.ts'

export interface ReplayOptions extends ReceiptOptions {
  certificateCheck: CertificateCheck
  /** Or why there is none: the steps that need it are then not checked. */
  reader: PageReader | Unchecked
  verdictCheck: VerdictCheck
  timestamps: StampOptions
}

export interface Replay {
  /** Every step holds, but for those for which nothing was given. */
  ok: boolean
  /** Something differs. */
  differs: boolean
  steps: readonly Step[]
  /** What the package says, as far as its step holds. */
  facts: Facts
}

export interface Facts {
  packageSha256: string
  packageBytes: number
  files?: Files
  manifest?: Manifest
  connections?: readonly Connection[]
  result?: PurchaseResult
  receipts?: { capture?: ProvedReceipt; result?: ProvedReceipt }
}

/** Replays a package with a result. Throws a TypeError for a malformed pin, never for a bad package or result. */
export async function replayPackage(packaged: Uint8Array, result: Uint8Array, options: ReplayOptions): Promise<Replay> {
  const steps = new Steps()
  const facts: Facts = { packageSha256: sha256Hex(packaged), packageBytes: packaged.length }
  let files: Files = new Map()
  await steps.take('package', 'the package is a whole ZIP archive', [], () => {
    files = readZip(packaged)
    facts.files = files
    return null
  })
  await steps.take('files', 'each file is as datapackage.json lists it', ['package'], () => checkFiles(files))
  const checks = await takeResult(steps, readResult(result), options)
  if (steps.holds('result')) facts.result = readResult(result) as PurchaseResult
  await takeReceipts(steps, files, facts, options)
  // Without a signature a manifest proves nothing, so nothing is held against it.
  const manifest = steps.holds('manifest_signed') ? facts.manifest : undefined
  const captured: Captured = await takeHops(steps, files, manifest)
  await takeConnections(steps, files, manifest, captured, options.certificateCheck)
  if (captured.connections) facts.connections = captured.connections
  await takeText(steps, captured, manifest, facts.result, options.reader)
  await takeObservation(steps, captured, manifest, facts.result)
  await takeVerdict(steps, facts.result, options.verdictCheck)
  await takeQuotes(steps, checks)
  await takeTimestamps(steps, files, facts, options)
  const differs = steps.all.some(({ state }) => state === 'differs')
  const ok = steps.all.every((step) => step.ok || step.cause === 'optional')
  return { ok, differs, steps: steps.all, facts }
}

/** Undefined for what is no JSON, which has the wrong shape for every check. */
function readResult(bytes: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** The receipts of manifest and result, the proofs that they are in the log, and the signature of its head. */
async function takeReceipts(steps: Steps, files: Files, facts: Facts, options: ReplayOptions): Promise<void> {
  const given: { capture?: unknown; result?: unknown } = {}
  await steps.take('receipts', 'the package has the receipts of manifest and result', ['package'], () => {
    Object.assign(given, readReceipts(files))
    facts.receipts = {}
    return null
  })
  const proofs = { capture: verifyReceipt(given.capture, options), result: verifyReceipt(given.result, options) }
  const of = (kind: keyof typeof proofs, names: readonly string[]) =>
    proofs[kind].checks.filter(({ name }) => names.includes(name))
  await steps.take('manifest_signed', 'the service signed exactly this manifest', ['receipts'], () => {
    requireAll(of('capture', ATTESTED))
    const receipt = given.capture as ProvedReceipt
    checkManifestReceipt(receipt.attestation, fileOf(files, MANIFEST))
    facts.manifest = readManifest(files)
    facts.receipts!.capture = receipt
    return null
  })
  await steps.take('manifest_in_chain', "the manifest's receipt is in the log", ['manifest_signed'], () =>
    included(of('capture', INCLUDED)),
  )
  await steps.take('result_in_chain', "the result's receipt is in the log", ['receipts', 'result_signed'], () => {
    requireAll(of('result', ATTESTED))
    const { attestation } = given.result as ProvedReceipt
    const own = facts.result!.receipt.attestation
    if (canonicalJson(attestation) !== canonicalJson(own))
      throw new Fault(
        `${RECEIPTS} has the receipt of serial ${attestation.serial}, and the result has serial ${own.serial}`,
      )
    facts.receipts!.result = given.result as ProvedReceipt
    return included(of('result', INCLUDED))
  })
  await steps.take('checkpoint', 'the log signed the heads that the proofs lead to', ['receipts'], () => {
    if (options.vkey === undefined) return new Unchecked('no verifier key of the log was given (--vkey, or in --keys)')
    requireAll(of('capture', ['shape', 'checkpoint']))
    return requireAll(of('result', ['shape', 'checkpoint']))
  })
}

const ATTESTED = [
  'plain_json',
  'well_formed_unicode',
  'shape',
  'trusted_key',
  'signature',
  'receipt_hash',
  'attested_time',
]
const INCLUDED = ['inclusion', 'pinned_tree']

function included(checks: readonly Check[]): Note | null {
  requireAll(checks)
  const note = checks.find(({ name }) => name === 'inclusion')?.detail
  return note === undefined ? null : new Note(note)
}

/** Any account may have any digest attested, so only `requested_by` shows that the service itself captured this. */
function checkManifestReceipt({ requested_by, label, subject_sha256 }: Attestation, manifest: Uint8Array): void {
  if (requested_by !== 'source-capture' || label !== null)
    throw new Fault(`the receipt was made for ${JSON.stringify(requested_by)}, not by a capture`)
  const found = sha256Hex(manifest)
  if (found !== subject_sha256)
    throw new Fault(`${MANIFEST}: SHA-256 is ${found}, and its receipt attests ${subject_sha256}`)
}

/** Without a reply there is nothing to check. */
async function takeTimestamps(steps: Steps, files: Files, facts: Facts, options: ReplayOptions): Promise<void> {
  const hasReplies = [...files.keys()].some((name) => name.startsWith('evidence/timestamps/'))
  const proves = 'a time-stamp authority signed when the head of the log existed that the proof leads to'
  await steps.take('timestamps', proves, hasReplies ? ['manifest_in_chain'] : [], () => {
    if (!hasReplies) return new Unchecked('the package has none: the times are by the clock of the service')
    const { vkey, keys, timestamps, signatureCheck } = options
    const verifierKeys = vkey === undefined ? undefined : readVerifierKeys(vkey, keys)
    return judgeTimestamps(files, facts.receipts!.capture!, verifierKeys, timestamps, signatureCheck)
  })
}
