// The accounts of the run: callers of the control toolkit. Each logs what was acknowledged, and what may have happened
// without an answer.
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { CountersignError } from '../../client/client.ts'
import { type BenchAccount, openAccounts } from '../accounts.ts'
import { seeded } from '../eval/random.ts'
import { type Clients, type Closing, insist, openClients } from './errand.ts'
import type { World } from './world.ts'

const PACE_MS = 250
const TIMEOUT_MS = 8_000
const DAY_SECONDS = 86_400
/** The shortest interval that the service allows. */
const SILENCE = { interval_s: 10, grace_s: 5 }
/** The heartbeats of one in so many watchdogs stop and do not return. */
const SILENT = 4

/** A receipt as it was acknowledged. */
export interface AcknowledgedReceipt {
  serial: number
  receiptHash: string
}

export interface AcknowledgedLease {
  id: string
  /** Of the acts, in order. */
  receipts: AcknowledgedReceipt[]
  isRevoked: boolean
}

export interface AcknowledgedWatchdog {
  name: string
  account: string
  kind: 'silent' | 'failing'
  /** Some heartbeat may have been accepted later than its caller thought. */
  isUnsure: boolean
  isDone: boolean
}

export interface AccountJournal {
  receipts: (AcknowledgedReceipt & { subject: string })[]
  leases: AcknowledgedLease[]
  /** Grants that may have been made without an answer. */
  unknownGrants: number
  dogs: AcknowledgedWatchdog[]
  /** Serials in the order in which one caller got them. */
  sequences: number[][]
  /**
   * What the journal slots of the service should hold: the digests that were written, or may have been written at the
   * end.
   */
  slots: { account: BenchAccount; slot: string; sha256: string[] }[]
  /** Errors that were detected at once, in words. */
  violations: string[]
  /** Errors that a repeat does not resolve, by code. */
  refusals: Record<string, number>
  calls: number
}

interface Caller {
  account: BenchAccount
  clients: Clients
  closing: Closing
  journal: AccountJournal
}

/** Calls by `count` accounts, each in four ways at once, until it is over. */
export async function useToolkit(
  world: World,
  origins: string[],
  { count, seed, closing }: { count: number; seed: number; closing: Closing },
): Promise<AccountJournal> {
  const accounts = (await openAccounts(world.admin, 'house')).slice(0, count)
  const journal: AccountJournal = {
    receipts: [],
    leases: [],
    unknownGrants: 0,
    dogs: [],
    sequences: [],
    slots: [],
    violations: [],
    refusals: {},
    calls: 0,
  }
  const callers = accounts.map((account, n): Caller => {
    const clients = openClients(origins, seeded(seed + 31 * n), { apiKey: account.key })
    return { account, clients, closing, journal }
  })
  const ways = [askForReceipts, lease, (caller: Caller) => keepDogs(caller, world.hosts.receiver), write]
  await Promise.all(callers.flatMap((caller) => ways.map((way) => way(caller))))
  return journal
}

/** @returns undefined when it was refused or given up */
async function ask<T>(
  { clients, closing, journal }: Caller,
  call: (client: ReturnType<Clients['any']>) => Promise<T>,
): Promise<{ value: T | undefined; unknown: number; code: string | undefined }> {
  const errand = await insist(clients, closing, call)
  journal.calls++
  if (errand.isRefused) journal.refusals[errand.code!] = (journal.refusals[errand.code!] ?? 0) + 1
  return errand
}

async function askForReceipts(caller: Caller) {
  const { closing, journal } = caller
  const sequence: number[] = []
  journal.sequences.push(sequence)
  while (!closing.over.aborted) {
    const subject = randomBytes(32).toString('hex')
    const idempotencyKey = randomBytes(16).toString('hex')
    const create = () =>
      ask(caller, (client) =>
        client.createReceipt({ subject_sha256: subject }, { idempotencyKey, timeoutMs: TIMEOUT_MS }),
      )
    const { value } = await create()
    if (value) {
      const { serial, receipt_hash } = value.attestation
      sequence.push(serial)
      journal.receipts.push({ subject, serial, receiptHash: receipt_hash })
      const again = (await create()).value
      if (again && again.attestation.receipt_hash !== receipt_hash)
        journal.violations.push(`the key of receipt ${serial} got receipt ${again.attestation.serial} when repeated`)
    }
    await pause(PACE_MS)
  }
}

async function lease(caller: Caller) {
  const { closing, journal } = caller
  const options = { timeoutMs: TIMEOUT_MS }
  const sequence: number[] = []
  journal.sequences.push(sequence)
  while (!closing.over.aborted) {
    const terms = { agent: 'house', action: 'sweep', lim: '', ttl_s: 3600 }
    const granted = await ask(caller, (client) => client.grantLease(terms, options))
    journal.unknownGrants += granted.unknown
    if (granted.value) {
      const lease_id = granted.value.lease.lease_id
      const acknowledged: AcknowledgedLease = { id: lease_id, receipts: [], isRevoked: false }
      journal.leases.push(acknowledged)
      const hear = ({ attestation }: { attestation: { serial: number; receipt_hash: string } }) => {
        acknowledged.receipts.push({ serial: attestation.serial, receiptHash: attestation.receipt_hash })
        sequence.push(attestation.serial)
      }
      hear(granted.value)
      const renewed = await ask(caller, (client) => client.renewLease({ lease_id }, options))
      if (renewed.value) hear(renewed.value)
      const revoked = await ask(caller, (client) => client.revokeLease({ lease_id }, options))
      if (revoked.value) {
        // An earlier attempt may have revoked it: the answer is then the receipt of that.
        if (revoked.unknown === 0) hear(revoked.value)
        acknowledged.isRevoked = true
        const seen = (await ask(caller, (client) => client.getLease({ lease_id }, options))).value
        if (seen && seen.state !== 'revoked') journal.violations.push(`lease ${lease_id} is ${seen.state} when revoked`)
      }
    }
    await pause(PACE_MS)
  }
}

async function keepDogs(caller: Caller, receiver: string) {
  const { account, closing, journal } = caller
  const options = { timeoutMs: TIMEOUT_MS }
  for (let n = 0; !closing.over.aborted; n++) {
    const name = `${account.accountId.slice(-4)}-${n}`
    const kind = n % SILENT === 0 ? 'silent' : 'failing'
    const clock = kind === 'silent' ? SILENCE : { interval_s: DAY_SECONDS }
    const terms = { name, webhook_url: `https://${receiver}/${name}`, ...clock }
    const made = await ask(caller, (client) => client.putWatchdog(terms, options))
    if (made.value) {
      const dog: AcknowledgedWatchdog = { name, account: account.accountId, kind, isUnsure: false, isDone: false }
      journal.dogs.push(dog)
      const beats = kind === 'silent' ? (['ok'] as const) : (['fail', 'ok'] as const)
      let heard = 0
      for (const status of beats) {
        const beat = await ask(caller, (client) => client.sendHeartbeat({ name, status }, options))
        dog.isUnsure ||= beat.unknown > 0
        if (beat.value) heard++
      }
      dog.isDone = heard === beats.length
    }
    await pause(4 * PACE_MS)
  }
}

/**
 * One slot with one writer, which names the state that it replaces, so a late repeat of an earlier call changes
 * nothing.
 */
async function write(caller: Caller) {
  const { account, closing, journal } = caller
  const slot = 'log'
  const kept = { account, slot, sha256: [] as string[] }
  journal.slots.push(kept)
  const options = { timeoutMs: TIMEOUT_MS }
  for (let n = 0; !closing.over.aborted; n++) {
    const data = Buffer.from(`${n} ${randomBytes(64).toString('hex')}`)
    const sha256 = createHash('sha256').update(data).digest('hex')
    const before = kept.sha256.at(-1)
    const condition = before ? { ifMatch: `"${before}"` } : { ifNoneMatch: '*' }
    const written = await insist(caller.clients, closing, (client) =>
      client.putJournalSlot({ slot, data }, { ...options, ...condition }),
    )
    journal.calls++
    // An attempt without an answer may have been the one that wrote it.
    const mayBeWritten = written.value || written.unknown > 0
    if (!mayBeWritten) {
      if (written.code === 'precondition_failed')
        journal.violations.push(`slot of ${account.accountId} does not hold what was written before ${n}`)
      await pause(PACE_MS)
      continue
    }
    const read = (await ask(caller, (client) => client.getJournalSlot({ slot }, options).catch(absent))).value
    const now = read && createHash('sha256').update(read.data).digest('hex')
    if (written.value || now === sha256) kept.sha256 = [sha256]
    else if (read === undefined) kept.sha256 = [...kept.sha256, sha256]
    if (now !== undefined && !kept.sha256.includes(now))
      journal.violations.push(`slot of ${account.accountId} was read and is not what was written last (${n})`)
    // Without an answer to either it is not known what to replace.
    if (kept.sha256.length > 1) return
    await pause(PACE_MS)
  }
}

function absent(error: CountersignError) {
  if (error.code !== 'not_found') throw error
  return undefined
}
