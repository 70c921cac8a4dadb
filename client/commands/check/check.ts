// `countersign check`: its options and its help. `check-run.ts` runs it.
import { UsageError } from '../../arguments.ts'
import { KEEP_DAYS } from '../../report/answer-store.ts'
import { command } from '../command.ts'
import { YES } from '../confirm.ts'
import { ACCOUNT } from '../toolkit.ts'
import type { CheckFormat } from './run.ts'

const FORMATS: readonly CheckFormat[] = ['text', 'json', 'sarif', 'junit']

const OPTIONS = {
  ...ACCOUNT,
  format: { type: 'string', value: 'FORMAT', help: `${FORMATS.join(', ')}; text` },
  output: {
    type: 'string',
    isWritten: true,
    value: 'FILE',
    help: 'write the format to this file, and the text to standard output',
  },
  html: {
    type: 'string',
    isWritten: true,
    value: 'FILE',
    help: 'write one page with a card for each citation to this file',
  },
  summary: { type: 'string', isWritten: true, value: 'FILE', help: 'append a summary in Markdown to this file' },
  cache: {
    type: 'string',
    isWritten: true,
    value: 'FILE',
    help: `keep successful checks in this file for ${KEEP_DAYS} days, and do not repeat them`,
  },
  verify: { type: 'boolean', help: 'also buy verdicts for what a quote check cannot decide; asks first' },
  wallet: {
    type: 'string',
    value: 'FILE',
    help: 'holds the key that pays, mode 600; default: COUNTERSIGN_WALLET, which names\nthe file or is the key',
  },
  budget: { type: 'string', value: 'USD', help: 'the most that this run may spend, such as 1.50' },
  'budget-file': {
    type: 'string',
    isWritten: true,
    value: 'FILE',
    help: 'count the budget over all runs that name this file',
  },
  group: { type: 'boolean', help: 'buy verdicts on one page together, up to ten by one payment, which costs less' },
  verdicts: {
    type: 'string',
    value: 'DIR',
    default: '.countersign-verdicts',
    help: `keeps results, receipts and journal: no verdict is bought twice within ${KEEP_DAYS} days;\n.countersign-verdicts`,
  },
  'solana-rpc': { type: 'string', value: 'URL', help: 'the node that Solana payments are prepared with' },
  fix: { type: 'boolean', help: 'replace misquotations by the words of the page; asks first' },
  yes: YES,
} as const

export const check = command({
  summary: "check a report's citations against their pages",
  operands: ['REPORT'],
  usage: '--service URL --key FILE',
  about:
    'REPORT is Markdown or HTML; - reads standard input. Quotations beside a link, block quotations and text fragments\n' +
    'must be on the page that is cited for them; every cited page must exist. Pages are read by the free quote\n' +
    'check, so each page counts against the daily limit of the account. A sentence that does not quote is listed as\n' +
    'unverified: a quote check cannot say whether the page supports it. --verify says how many are left and what\n' +
    'verdicts on them cost, asks, and buys them.\n\n' +
    'A file or folder that cannot be written is found before anything is asked or bought. If a disk becomes full after\n' +
    'that, the outcome is printed all the same.',
  examples: [
    'countersign check report.md --service https://service.example --key key.txt',
    'countersign check report.md --fix',
    'countersign check report.md --verify --wallet wallet.key --budget 1.50 --html check.html',
    'countersign check report.html --format sarif --output check.sarif --cache .countersign-cache.json',
  ],
  exitStatus:
    '0 all citations hold, 1 some do not or were not checked, or a disk is full, 2 wrong usage. A page that has\n' +
    'moved or that the service cannot read is a warning, and an unverified sentence a note: neither is a failure.\n' +
    'With --verify a sentence that its page contradicts or does not support fails, and so does a verdict that did not\n' +
    'come; 130 interrupted: the same command goes on.',
  options: OPTIONS,
  run: async ([file = ''], options) => {
    const format = formatOf(options)
    return (await import('./run.ts')).runCheck(file, { ...options, format })
  },
})

function formatOf({ format, json }: { format?: string; json?: boolean }): CheckFormat {
  const chosen = FORMATS.find((one) => one === (format ?? (json ? 'json' : 'text')))
  if (!chosen) throw new UsageError(`--format ${format} is none of ${FORMATS.join(', ')}.`)
  return chosen
}
