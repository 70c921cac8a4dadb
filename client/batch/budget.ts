// The limit on what a run may spend, and the record of what it has spent. An amount is reserved before a payment is signed,
// and counts as spent until the service has said that it was not charged, because a payment with an unknown outcome may
// have been charged.

import { lock, waitForLock } from './lock.ts'
import { checkLines, DamagedFileError, LogFile } from './log-file.ts'
import { Opened } from './opened.ts'

/** The cap does not allow another payment. */
export class BudgetError extends Error {
  override name = 'BudgetError'
}

export interface Budget {
  /** Atomic units that are spent or reserved. */
  readonly spent: bigint
  readonly cap: bigint
  /** Throws a BudgetError, at once; resolves when the reservation is on the disk. */
  reserve(payment: string, atoms: bigint): Promise<void>
  /** The service said that this payment was not charged, or it was never sent. */
  release(payment: string): Promise<void>
}

/** A budget of one run. Its record is the journal of the run, from which the reservations come. */
export function openRunBudget(cap: bigint, reserved: ReadonlyMap<string, bigint>): Budget {
  return new Count(cap, new Map(reserved))
}

interface FileOptions {
  cap: bigint
  run: string
  sent: ReadonlyMap<string, bigint>
}

interface BudgetLine {
  at: string
  payment: string
  /** Atomic units; 0 releases. */
  atoms: string
}

/**
 * A budget over several runs, in a file that only one run at a time may use. `sent` has the payments of the current run
 * that count as spent, from its own journal: a reservation that was made just before a crash, and never signed, is
 * released, and a payment that was made without this file is added. Throws a LockedError or a DamagedFileError.
 */
export async function openBudgetFile(
  path: string,
  { cap, run, sent, take = lock }: FileOptions & { take?: typeof lock },
): Promise<Budget & AsyncDisposable> {
  await using opened = new Opened()
  opened.use(await take(budgetLock(path)))
  const held = new Map<string, bigint>()
  const file = opened.use(await LogFile.open<BudgetLine>(path, readInto(held, path)))
  const write = (payment: string, atoms: bigint) =>
    file.append({ at: new Date().toISOString(), payment, atoms: String(atoms) })
  const count = new Count(cap, held, write)
  const unused = [...held.keys()].filter((payment) => payment.startsWith(run) && !sent.has(payment))
  await Promise.all(unused.map((payment) => count.release(payment)))
  await Promise.all([...sent].map(([payment, atoms]) => count.add(payment, atoms)))
  const closing = opened.move()
  return Object.assign(count, { [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose]() })
}

/** The path of the lock of a budget file. */
export const budgetLock = (path: string) => `${path}.lock`

function readInto(held: Map<string, bigint>, path: string) {
  return ({ payment, atoms }: BudgetLine) => {
    if (typeof payment !== 'string' || !/^\d{1,18}$/.test(atoms))
      throw new DamagedFileError(`${path} holds a line that is not of a budget. Give another --budget-file.`)
    if (BigInt(atoms) === 0n) held.delete(payment)
    else held.set(payment, BigInt(atoms))
  }
}

/** Throws a DamagedFileError for a file that holds something else than a budget. Changes nothing, and there need be no file. */
export function checkBudget(path: string): Promise<void> {
  return checkLines<BudgetLine>(path, readInto(new Map(), path))
}

/**
 * The same file for purchases that are made one by one: it is held only while an amount is reserved or released, so that other
 * processes can use it in the meantime, and it is waited for. `spent` is what it was at the last use. Throws a LockedError when the
 * file is not free for a minute.
 */
export function openSharedBudget(path: string, options: () => FileOptions): Budget {
  let spent = 0n
  const use = async (change: (budget: Budget) => Promise<void>) => {
    await using file = await openBudgetFile(path, { ...options(), take: waitForLock })
    await change(file).finally(() => {
      spent = file.spent
    })
  }
  return {
    get spent() {
      return spent
    },
    cap: options().cap,
    reserve: (payment, atoms) => use((file) => file.reserve(payment, atoms)),
    release: (payment) => use((file) => file.release(payment)),
  }
}

class Count implements Budget {
  readonly cap: bigint
  #spent = 0n
  readonly #held: Map<string, bigint>
  readonly #write: (payment: string, atoms: bigint) => Promise<void>

  constructor(cap: bigint, held: Map<string, bigint>, write = async (_payment: string, _atoms: bigint) => {}) {
    this.cap = cap
    this.#held = held
    this.#write = write
    for (const atoms of held.values()) this.#spent += atoms
  }

  get spent(): bigint {
    return this.#spent
  }

  async reserve(payment: string, atoms: bigint): Promise<void> {
    if (this.#held.has(payment)) return
    if (this.#spent + atoms > this.cap) throw new BudgetError('The budget is reached.')
    await this.add(payment, atoms)
  }

  /** Counts money that is already spent, even beyond the limit. */
  async add(payment: string, atoms: bigint): Promise<void> {
    if (this.#held.has(payment)) return
    // Counted before anything is awaited, so that two rows cannot use the same remaining amount.
    this.#held.set(payment, atoms)
    this.#spent += atoms
    await this.#write(payment, atoms)
  }

  async release(payment: string): Promise<void> {
    const atoms = this.#held.get(payment)
    if (atoms === undefined) return
    this.#held.delete(payment)
    this.#spent -= atoms
    await this.#write(payment, 0n)
  }
}
