// `countersign batch`: its options and its help. `batch-run.ts` runs it.
import { FORMATS } from '../../batch/formats.ts'
import { command } from '../command.ts'
import { YES } from '../confirm.ts'

const OPTIONS = {
  service: { type: 'string', value: 'URL', help: 'where the service is; default: COUNTERSIGN_SERVICE' },
  wallet: {
    type: 'string',
    value: 'FILE',
    help: 'holds the key that pays, mode 600; default: COUNTERSIGN_WALLET, which names\nthe file or is the key',
  },
  budget: { type: 'string', value: 'USD', help: 'the most that may be spent, such as 6.00' },
  'budget-file': {
    type: 'string',
    isWritten: true,
    value: 'FILE',
    help: 'count the budget over all batches that name this file',
  },
  out: { type: 'string', value: 'DIR', help: 'the folder for journal, results and errors' },
  format: { type: 'string', value: 'FORMAT', help: `${FORMATS.join(', ')}; by default by the ending of FILE` },
  group: { type: 'boolean', help: 'buy rows of one page together, up to ten by one payment, which costs less' },
  concurrency: { type: 'string', value: 'N', default: '8', help: 'most purchases in parallel; default: 8' },
  resume: { type: 'boolean', help: 'continue the batch in DIR; bought rows are not bought again' },
  'retry-errors': { type: 'boolean', help: 'continue, and try failed rows again, except refusals of the last day' },
  'solana-rpc': { type: 'string', value: 'URL', help: 'the node that Solana payments are prepared with' },
  'dry-run': { type: 'boolean', help: 'print what would be bought, and stop' },
  yes: YES,
} as const

export const batch = command({
  summary: 'buy a verification for each row of a file',
  operands: ['FILE'],
  usage: '--service URL --wallet FILE --budget USD --out DIR',
  about:
    'FILE is CSV or TSV with a header (source_url, claim; id and max_age_seconds where you have them), or JSON lines\n' +
    '(custom_id, source_url, claim, max_age_seconds). - reads standard input, and needs --format.\n\n' +
    'DIR then holds results.jsonl (the bytes of each result and its receipt), results.csv, errors.jsonl, and\n' +
    'journal.jsonl, by which --resume goes on after any interruption: no row is bought twice, and none is lost.',
  examples: [
    'countersign batch claims.csv --service https://service.example --dry-run',
    'countersign batch claims.csv --service https://service.example --wallet wallet.key --budget 6.00 --out run1',
    'countersign batch claims.csv --service https://service.example --wallet wallet.key --budget 9.00 --out run1 --resume',
  ],
  exitStatus:
    '0 every row completed, 1 some rows failed or are left, or the disk became full, 2 wrong usage\n' +
    '(also a file that cannot be read or written), or the question was answered with no: nothing bought,\n' +
    '3 the budget is reached and the rest untouched, 130 interrupted: --resume goes on.',
  options: OPTIONS,
  run: async ([file = ''], options) => (await import('./run.ts')).runBatch(file, options),
})
