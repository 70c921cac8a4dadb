// `countersign buy`: its options and its help. `buy-run.ts` runs it.
import { UsageError } from '../../arguments.ts'
import { command } from '../command.ts'
import { YES } from '../confirm.ts'
import { PINS } from '../pins.ts'

const VERDICTS = ['supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'] as const

/** What the commands that buy one verification have in common. */
export const PURCHASE = {
  service: { type: 'string', value: 'URL', help: 'where the service is; default: COUNTERSIGN_SERVICE' },
  wallet: {
    type: 'string',
    value: 'FILE',
    help: 'holds the key that pays, mode 600; default: COUNTERSIGN_WALLET, which names\nthe file or is the key',
  },
  'max-price': { type: 'string', value: 'USD', default: '0.05', help: 'the most that one purchase may cost; 0.05' },
  budget: {
    type: 'string',
    value: 'USD',
    help: 'the most that may be spent: by this run, or by all runs with the same --budget-file',
  },
  'budget-file': {
    type: 'string',
    isWritten: true,
    value: 'FILE',
    help: 'counts what all runs that name it have spent',
  },
  journal: {
    type: 'string',
    value: 'DIR',
    default: '.countersign-purchases',
    help: 'keeps payments and results, so that nothing is paid twice; .countersign-purchases',
  },
  ...PINS,
  'solana-rpc': { type: 'string', value: 'URL', help: 'the node that Solana payments are prepared with' },
  yes: YES,
} as const

export const buy = command({
  summary: 'buy the verdict of a page on a claim, or on up to ten',
  operands: ['URL', 'CLAIM', '[CLAIM...]'],
  usage: '--service URL --wallet FILE',
  about:
    'Prints price and recipient, asks, pays, waits, verifies the result offline, and prints verdict and quotes. Killed and\n' +
    'run again it goes on with the payment that it made: the same page, claim and options are never paid twice. A\n' +
    'finished purchase is shown again for 24 hours; --again buys anew.\n\n' +
    'Up to ten claims on one page are one purchase: the page is read once, there is one payment and one receipt. That costs\n' +
    "0.03 USDC, and 0.01 for each claim after the first. --context says what words such as 'it' refer to.\n\n" +
    'What fetches a result and its evidence again is kept too, mode 600, in the folder of --journal; a line names it.\n\n' +
    'A file or folder that cannot be written is found before anything is paid. If a disk becomes full after that, the\n' +
    'verdict is printed all the same, and the same command with another --out gets the result again, and pays nothing.\n\n' +
    'Without --pin or --keys the key of the first use is kept in the folder of --journal, and needed from then on.',
  examples: [
    "countersign buy https://example.org/ 'It says so.' --service https://service.example --wallet wallet.key",
    "countersign buy https://example.org/ 'It says so.' --yes --json --budget 6.00 --budget-file spent.jsonl",
    "countersign buy https://example.org/ 'It says so.' --yes --expect contradicts --out result.json",
    "countersign buy https://example.org/ 'It says so.' --out result.json --evidence package.wacz",
    "countersign buy https://example.org/ 'It opened in 1874.' 'It has three piers.' --context 'The harbour of Kelby'",
  ],
  exitStatus:
    '0 the page supports every claim, or each verdict is that of --expect; 1 any other verdict; 2 wrong usage,\n' +
    'or the question was answered with no; 3 the price or the budget forbids it; 4 failed, and nothing was charged;\n' +
    '5 paid, but the result does not verify; 6 still pending, or paid and a file could not be written or the evidence\n' +
    'not fetched: the same command goes on; 130 interrupted: the same command goes on.',
  options: {
    ...PURCHASE,
    context: { type: 'string', value: 'TEXT', help: 'what the claims refer to, at most 1,000 characters; no evidence' },
    expect: {
      type: 'string',
      value: 'VERDICT',
      help: `end with 0 for this verdict on every claim:\n${VERDICTS.join(', ')}`,
    },
    'max-age': {
      type: 'string',
      value: 'SECONDS',
      help: 'the greatest age of an observation that may be used, 0 to 300',
    },
    out: { type: 'string', isWritten: true, value: 'FILE', help: 'write the bytes of the result to this file' },
    evidence: {
      type: 'string',
      isWritten: true,
      value: 'FILE',
      help: 'write the evidence package to this file, for countersign replay. Where the service has\nnone, a message says so, and the exit status is still that of the verdict',
    },
    again: { type: 'boolean', help: 'buy anew what was bought within the last 24 hours' },
  },
  run: async ([url = '', ...claims], options) => {
    const { expect } = options
    if (expect !== undefined && !VERDICTS.some((one) => one === expect))
      throw new UsageError(`--expect ${expect} is none of ${VERDICTS.join(', ')}.`)
    return (await import('./run.ts')).runBuy(url, claims, options)
  },
})
