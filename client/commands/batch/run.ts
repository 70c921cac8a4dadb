// Runs the command `batch`: buys a verification for each row of a file. Prints what it will do before anything is paid, and
// continues where it was interrupted.
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError, visible } from '../../arguments.ts'
import { type Budget, openBudgetFile, openRunBudget } from '../../batch/budget.ts'
import { FORMATS, type Format, formatOf } from '../../batch/formats.ts'
import { costOf, groupByPage, type Item, itemsOf, rowsOf } from '../../batch/groups.ts'
import { checkJournal, Journal } from '../../batch/journal.ts'
import { checkUnlocked, lock } from '../../batch/lock.ts'
import { checkLines } from '../../batch/log-file.ts'
import { Opened } from '../../batch/opened.ts'
import { type ErrorLine, isRetried, OutputFiles } from '../../batch/output-files.ts'
import { readRows } from '../../batch/rows.ts'
import { groupRows } from '../../batch/twins.ts'
import type { Terms } from '../../wallet.ts'
import {
  askTermsOfRow,
  budgetOf,
  buyRows,
  checkBudgetFileOfRun,
  countWithTwins,
  explained,
  ownAddress,
  settleAccounts,
} from '../buy/buying.ts'
import type { ExitStatus } from '../command.ts'
import { confirm } from '../confirm.ts'
import { checkFolder, diskFault, isOfDisk } from '../files.ts'
import { readInput } from '../input-file.ts'
import { firstError, note } from '../output.ts'
import { openClient } from '../patience.ts'
import { serviceUrl } from '../toolkit.ts'
import { readWallet } from '../wallet-file.ts'
import { counted, printPlan, questionOf, report } from './report.ts'

/** As given on the command line. */
export interface BatchOptions {
  service?: string
  wallet?: string
  budget?: string
  'budget-file'?: string
  out?: string
  format?: string
  group?: boolean
  concurrency: string
  resume?: boolean
  'retry-errors'?: boolean
  'solana-rpc'?: string
  'dry-run'?: boolean
  yes?: boolean
  json?: boolean
}

/** Returns the exit status. Throws a UsageError, also for errors of the service before anything is paid. */
export function runBatch(file: string, options: BatchOptions): Promise<ExitStatus> {
  return explained(() =>
    run(file, options).catch((thrown: unknown) => {
      throw diskError(thrown, options.out) ?? thrown
    }),
  )
}

/** What a full disk has stopped, in words: the first of the errors, the folder, and how to go on. Null for another error. */
function diskError(thrown: unknown, folder: string | undefined): Error | null {
  const cause = firstError(thrown)
  if (folder === undefined || !isOfDisk(cause)) return null
  const isFull = cause.code === 'ENOSPC' || cause.code === 'EDQUOT'
  const words = `${isFull ? 'Free some space' : 'Mend that'}, then --resume goes on, and pays nothing twice.`
  return new Error(`${diskFault(cause, folder)} ${words}`, { cause })
}

async function run(file: string, options: BatchOptions): Promise<ExitStatus> {
  const service = serviceUrl(options.service)
  const concurrency = countOf(options.concurrency)
  const rows = readRows(await readInput(file), formatFor(file, options.format))
  const { firsts, twins } = groupRows(rows.usable)
  const items: Item[] = options.group ? groupByPage(firsts) : firsts
  if (options['dry-run']) {
    const budget = options.budget === undefined ? null : budgetOf(options.budget)
    const { capabilities, price } = await askPrice(service)
    printPlan(rows, { firsts, items, capabilities, price, budget, options })
    return 0
  }
  // Everything that is given is looked at before the service is asked.
  const cap = budgetOf(options.budget)
  if (options.out === undefined) throw new UsageError('The folder for the results is missing: give --out DIR.')
  const wallet = await readWallet(options.wallet, { solanaRpcUrl: options['solana-rpc'] })
  const goesOn = Boolean(options.resume || options['retry-errors'])
  await checkOutputs(options.out, options['budget-file'], goesOn)
  const { capabilities, price } = await askPrice(service)

  let known: Terms | undefined
  if (!goesOn) {
    printPlan(rows, { firsts, items, capabilities, price, budget: cap, options })
    if (rows.usable.length === 0) throw new UsageError('No row can be bought.')
    known = await askTermsOfRow(service, items, wallet, capabilities)
    note(`Paid to ${visible(known.payTo)} on ${visible(known.network)}, from ${ownAddress(wallet, known)}.\n`)
    if (!(await confirm(questionOf(firsts.length, costOf(items, price), capabilities), options.yes))) return 2
  }

  await mkdir(options.out, { recursive: true, mode: 0o700 })
  await using opened = new Opened()
  opened.use(await lock(lockOf(options.out)))
  const journal = opened.use(
    await Journal.open(
      join(options.out, 'journal.jsonl'),
      { service, input_sha256: rows.sha256, isGrouped: options.group ?? false },
      async () => known ?? (await askTermsOfRow(service, items, wallet, capabilities)),
    ),
  )
  if (options.group && !journal.header.grouped) note('This batch was begun without --group, and goes on row by row.\n')
  const now = Date.now()
  let retried = 0
  const retry = {
    isRetried: (error: ErrorLine) => isRetried(error, now),
    before(ids: string[]) {
      retried = ids.length
      return journal.retry(ids)
    },
  }
  const files = opened.use(await OutputFiles.open(options.out, { twins, ...(options['retry-errors'] && { retry }) }))
  const budget = await openBudget(opened, options, { cap, journal })
  await settleAccounts(journal, files, budget)
  for (const row of rows.unusable) if (!files.isDone(row.id)) await files.refuse(row)
  const open = firsts.filter(({ id }) => !files.isDone(id))
  const left = itemsOf(open, journal)
  const allRows = rows.usable.length + rows.unusable.length
  if (goesOn)
    note(
      `${counted(countWithTwins(open, files), 'row')} of ${allRows} left, ${counted(retried, 'failure')} tried again.\n`,
    )
  const unpaid = left.unpaid.flatMap(rowsOf).length
  const question = questionOf(unpaid, costOf(left.unpaid, price), capabilities)
  // Results of paid rows are fetched without a question.
  if (goesOn && unpaid > 0 && !(await confirm(question, options.yes))) return 2

  const all = [...left.paid, ...left.unpaid]
  const outcome = await buyRows({ service, wallet, items: all, journal, budget, files, concurrency, all: allRows })
  return report(outcome, { files, budget, all: allRows, options })
}

/**
 * Throws where the batch could not be written, or could not be begun or continued there: a UsageError, a LockedError, a JournalError or
 * a DamagedFileError.
 */
async function checkOutputs(out: string, budgetFile: string | undefined, goesOn: boolean): Promise<void> {
  await checkFolder(out)
  await checkBudgetFileOfRun(budgetFile)
  checkUnlocked(lockOf(out))
  const hasJournal = await exists(join(out, 'journal.jsonl'))
  if (goesOn && !hasJournal) throw new UsageError(`There is no batch in ${out} to go on with.`)
  if (goesOn) {
    await checkJournal(join(out, 'journal.jsonl'))
    for (const name of ['results.jsonl', 'errors.jsonl']) await checkLines(join(out, name))
    return
  }
  if (hasJournal) throw new UsageError(`${out} has a batch already: --resume goes on with it.`)
  // Rows that another batch has bought would count as bought by this one.
  for (const name of ['results.jsonl', 'errors.jsonl'])
    if (await exists(join(out, name)))
      throw new UsageError(`${out} has ${name} of another batch, and no journal. Give another --out.`)
}

const lockOf = (out: string) => join(out, 'lock')

async function askPrice(service: string) {
  const capabilities = await openClient({ baseUrl: service }).getCapabilities()
  return { capabilities, price: BigInt(capabilities.price.amount_atomic) }
}

function countOf(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new UsageError(`--concurrency ${text} is not a number from 1 to 9999.`)
  return Number(text)
}

function formatFor(file: string, given: string | undefined): Format {
  const format = given ?? formatOf(file)
  if (format === null || !FORMATS.includes(format as Format))
    throw new UsageError(
      given === undefined
        ? `Which format has ${file}? Give --format ${FORMATS.join(', ')}.`
        : `--format ${given} is none of ${FORMATS.join(', ')}.`,
    )
  return format as Format
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    ({ size }) => size > 0,
    () => false,
  )
}

async function openBudget(
  opened: Opened,
  options: BatchOptions,
  { cap, journal }: { cap: bigint; journal: Journal },
): Promise<Budget> {
  const { reserved } = journal
  const path = options['budget-file']
  if (path === undefined) return openRunBudget(cap, reserved)
  const run = `${journal.header.run}/`
  return opened.use(await openBudgetFile(path, { cap, run, sent: reserved }))
}
