// Runs the command `check`: reads a report, checks the pages that it cites, prints the outcome, and corrects misquotations.
import { appendFile, realpath, stat, writeFile } from 'node:fs/promises'
import { isAbsolute, relative } from 'node:path'
import { progressBar, UsageError, visible } from '../../arguments.ts'
import { type Countersign, CountersignError } from '../../client.ts'
import type { Clock } from '../../clock.ts'
import { KeptAnswers } from '../../report/answer-store.ts'
import { type Citation, findCitations } from '../../report/citations.ts'
import { applyCorrections, type Correction, correctionsFor } from '../../report/correction.ts'
import { differenceOf } from '../../report/difference.ts'
import { toJson, toJunit, toSarif } from '../../report/format-data.ts'
import { formatMarkdown, formatText } from '../../report/format-text.ts'
import { readHtml } from '../../report/html.ts'
import { type Judged, judge, LEVELS, wantedOf } from '../../report/judgement.ts'
import { readMarkdown } from '../../report/markdown.ts'
import { type Outcome, place } from '../../report/outcome.ts'
import { askPages } from '../../report/pages.ts'
import { Lines, type Report, UnreadableReportError } from '../../report/report.ts'
import { budgetOf, checkBudgetFile, checkBudgetFileOfRun, explained } from '../buy/buying.ts'
import type { ExitStatus } from '../command.ts'
import { confirm } from '../confirm.ts'
import { checkFolder, checkReplaceable, checkWritable, diskFault, isOfDisk, readable, replaceFile } from '../files.ts'
import { readIfThere, readInput } from '../input-file.ts'
import { explain, firstError, json, note, paint, print } from '../output.ts'
import { openClient, patienceWith } from '../patience.ts'
import { endAtSignals, INTERRUPTED } from '../signals.ts'
import { readApiKey, serviceUrl } from '../toolkit.ts'
import { readWallet } from '../wallet-file.ts'
import { fillCheckPage, readCheckPage } from './page.ts'
import { checkVerdicts, verifyCitations } from './verdicts.ts'

export type CheckFormat = 'text' | 'json' | 'sarif' | 'junit'

/** As given on the command line. */
export interface CheckOptions {
  service?: string
  key?: string
  format: CheckFormat
  output?: string
  html?: string
  summary?: string
  cache?: string
  fix?: boolean
  verify?: boolean
  wallet?: string
  budget?: string
  'budget-file'?: string
  group?: boolean
  verdicts: string
  'solana-rpc'?: string
  yes?: boolean
  json?: boolean
}

/** Returns the exit status. Throws a UsageError. */
export async function runCheck(file: string, options: CheckOptions): Promise<ExitStatus> {
  const { format } = options
  if (options.fix && file === '-') throw new UsageError('--fix changes a file; it cannot change standard input.')
  if (options.fix && !options.yes && !process.stdin.isTTY)
    throw new UsageError('--fix asks before it changes the report, and there is no terminal to ask on: give --yes.')
  if (options.verify && !options.yes && (file === '-' || !process.stdin.isTTY))
    throw new UsageError('--verify asks before it buys, and there is no terminal to ask on: give --yes.')
  using _ending = options.verify ? endAtSignals() : null
  const service = serviceUrl(options.service)
  // Before anything is asked or bought.
  const page = options.html === undefined ? null : await readCheckPage()
  const purse = options.verify ? await openPurse(options) : null
  const apiKey = await readApiKey(options.key)
  await checkOutputs(file, options)
  const text = decode(file, await readInput(file))
  const report = await readReport(file, text)
  const patience = patienceWith(service)
  const client = openClient({ baseUrl: service, apiKey }, patience)
  const citations = findCitations(report)
  const { judged: checked, pages } = await askService(client, citations, {
    service,
    cache: options.cache,
    clock: patience.clock,
  })
  const faults: string[] = []
  const again = 'The same command gets it again, and pays for nothing twice.'
  const verified = purse
    ? await verifyCitations(checked, { service, ...purse }).catch((thrown: unknown) => {
        const error = firstError(thrown)
        if (!isOfDisk(error)) throw thrown
        // What was found out is printed. A payment may have been made, so this is no wrong usage.
        faults.push(`${diskFault(error, options.verdicts)} Verdicts are missing above. ${again}`)
        return null
      })
    : null
  const judged = verified?.judged ?? checked
  const lines = new Lines(text)
  const outcome: Outcome = {
    file: nameOf(file),
    service,
    checkedAt: new Date().toISOString(),
    citations: place(judged, lines),
    pages,
    verdicts: verified?.sums ?? null,
  }
  const corrections = correctionsFor(judged, report.syntax)
  for (const fault of await write(outcome, { format, options, lines, corrections, page }))
    faults.push(`${fault} ${purse ? again : 'The outcome is printed above.'}`)
  const corrected = options.fix ? await correct(file, text, corrections, { lines, yes: options.yes }) : []
  const left = countLeft(judged, corrected)
  if (corrected.length > 0) note(`${correctedWords(file, left)}\n`)
  for (const fault of faults) explain(new Error(fault), options.json ?? false)
  if (verified?.isInterrupted) return INTERRUPTED
  if (faults.length > 0) return 1
  return left === 0 ? 0 : 1
}

/** Everything needed to buy, read before any request. */
async function openPurse(options: CheckOptions) {
  return {
    cap: budgetOf(options.budget),
    wallet: await readWallet(options.wallet, { solanaRpcUrl: options['solana-rpc'] }),
    budgetFile: options['budget-file'],
    isGrouped: options.group ?? false,
    folder: options.verdicts,
    yes: options.yes,
  }
}

/** Throws a UsageError for a file or folder that could not be written. */
async function checkOutputs(file: string, options: CheckOptions): Promise<void> {
  const { output, html, summary, cache, fix, service, verify, verdicts, 'budget-file': budgetFile } = options
  await checkWritable(output, html, summary)
  const report = fix ? await realpath(file).catch(() => file) : undefined
  await checkReplaceable(cache, report)
  if (!verify) return await checkBudgetFile(budgetFile)
  await explained(() => checkBudgetFileOfRun(budgetFile))
  await checkFolder(verdicts)
  await checkVerdicts(verdicts, serviceUrl(service))
}

/** A path within the working folder as it is from there, which programs that read the outcome can follow. */
function nameOf(file: string): string {
  if (file === '-') return 'standard input'
  const from = relative(process.cwd(), file)
  return from.startsWith('..') || isAbsolute(from) ? file : from
}

/** Keeps the byte order mark, so that offsets are those of the file. */
function decode(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new UsageError(`${file} is not UTF-8 text.`, { cause })
  }
}

async function readReport(file: string, text: string): Promise<Report> {
  const isHtml = /\.x?html?$/i.test(file) || (!/\.\w+$/.test(file) && /^\s*<(?:!doctype html|html)\b/i.test(text))
  try {
    return await (isHtml ? readHtml(text) : readMarkdown(text))
  } catch (cause) {
    if (cause instanceof UnreadableReportError) throw new UsageError(`${file}: ${cause.message}`, { cause })
    throw cause
  }
}

async function askService(
  client: Countersign,
  citations: readonly Citation[],
  { service, cache, clock }: { service: string; cache: string | undefined; clock: Clock },
): Promise<{ judged: Judged[]; pages: number }> {
  const wanted = wantedOf(citations)
  const store = cache === undefined ? undefined : await readCache(cache, service)
  const isTerminal = process.stderr.isTTY
  const onProgress = (done: number, all: number) => {
    if (isTerminal) note(`\r\x1b[K${progressBar(done, all, 24)} pages${done === all ? '\r\x1b[K' : ''}`)
  }
  const answers = await askPages(client, wanted, { store, onProgress, clock }).catch((error: unknown) => {
    if (isTerminal) note('\r\x1b[K')
    const isKey = error instanceof CountersignError && (error.status === 401 || error.status === 403)
    if (isKey) throw new UsageError(`The service refuses the API key: ${error.message}`, { cause: error })
    throw error
  })
  if (store && cache !== undefined) await replaceFile(cache, store.toText())
  return { judged: judge(citations, answers), pages: wanted.size }
}

/** Throws a UsageError for a file with other contents, which is not replaced. There need be none. */
function readCache(file: string, service: string): Promise<KeptAnswers> {
  return readable(file, async () => {
    return new KeptAnswers((await readIfThere(file)) ?? '', service)
  })
}

interface WriteOptions {
  format: CheckFormat
  options: CheckOptions
  lines: Lines
  corrections: readonly Correction[]
  page: string | null
}

/** Prints the outcome, and writes it to the files of the options. Returns a sentence for each file that cannot be written. */
async function write(outcome: Outcome, { format, options, lines, corrections, page }: WriteOptions): Promise<string[]> {
  const { output, summary, html } = options
  const made = () => {
    if (format === 'json') return json(toJson(outcome))
    if (format === 'sarif') return json(toSarif(outcome, lines, corrections))
    return format === 'junit' ? toJunit(outcome) : formatText(outcome, lines, (_, text) => text)
  }
  const isText = format === 'text' || (output !== undefined && !options.json)
  if (isText) print(formatText(outcome, lines, paint))
  else if (output === undefined) print(made())
  const faults: string[] = []
  const attempt = async (path: string, work: () => Promise<void>) => {
    const fault = await readable(path, work).then(
      () => null,
      (error: Error) => `${error.message}.`,
    )
    if (fault) faults.push(fault)
    return fault === null
  }
  if (output !== undefined && !(await attempt(output, () => writeFile(output, made()))) && !isText) print(made())
  if (summary !== undefined) await attempt(summary, () => appendFile(summary, formatMarkdown(outcome)))
  if (page !== null && html !== undefined) await attempt(html, () => writeFile(html, fillCheckPage(page, outcome)))
  return faults
}

/** Shows the corrections, asks, and makes them. Returns those that were made. */
async function correct(
  file: string,
  text: string,
  corrections: readonly Correction[],
  { lines, yes }: { lines: Lines; yes: boolean | undefined },
): Promise<readonly Correction[]> {
  if (corrections.length === 0) {
    note('There is no misquotation that could be corrected.\n')
    return []
  }
  for (const { start, before, after, url } of corrections) {
    const { line, column } = lines.at(start)
    note(`${visible(file)}:${line}:${column}  ${visible(url)}\n`)
    const runs = differenceOf(before, after).map(({ in: where, text: words }) => {
      const shown = visible(words)
      return where === 'both' ? shown : where === 'first' ? `[-${shown}-]` : `{+${shown}+}`
    })
    note(`  ${runs.join(' ')}\n`)
  }
  const many = corrections.length === 1 ? 'this quotation' : `these ${corrections.length} quotations`
  if (!(await confirm(`Replace ${many} in ${file} by the words of the page?`, yes))) return []
  const path = await realpath(file)
  if ((await readIfThere(path)) !== text) throw new UsageError(`${file} has changed meanwhile, and was not corrected.`)
  await replaceFile(path, applyCorrections(text, corrections), (await stat(path)).mode & 0o7777).catch(
    (cause: Error) => {
      // Verdicts may have been paid for, so this is no wrong usage.
      throw new Error(`${cause.message}. The report is as it was.`, { cause })
    },
  )
  return corrections
}

/** How many citations fail in the corrected report: all that failed, but for quotations whose wrong parts are now corrected. */
function countLeft(judged: readonly Judged[], corrections: readonly Correction[]): number {
  const made = new Set(corrections.map(({ start, end }) => `${start}-${end}`))
  return judged.filter(({ status, parts }) => {
    if (LEVELS[status] !== 'error') return false
    const wrong = parts.filter(({ found }) => found?.match === 'near' || found?.match === 'absent')
    const isCorrected = wrong.every((part) => made.has(`${part.replaceable?.start}-${part.replaceable?.end}`))
    return status !== 'wrong' || !isCorrected
  }).length
}

/** What was printed is about the report before its correction. */
function correctedWords(file: string, left: number): string {
  const outcome =
    left === 0 ? 'all citations hold' : `${left} ${left === 1 ? 'citation does' : 'citations do'} not hold`
  return `${visible(file)} is corrected: now ${outcome}, and the exit status says so.`
}
