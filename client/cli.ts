#!/usr/bin/env node
// The command line: verifies files offline, looks at what a service publishes, and calls it. Runs in Node only.
import { account } from './commands/account.ts'
import { batch } from './commands/batch.ts'
import { check } from './commands/check.ts'
import { citation } from './commands/citation.ts'
import { cite } from './commands/cite.ts'
import { type CommandGroup, start } from './commands/command.ts'
import { exportChain } from './commands/export.ts'
import { journal } from './commands/journal.ts'
import { lease } from './commands/lease.ts'
import { explain } from './commands/output.ts'
import { receipt } from './commands/receipt.ts'
import { ask, keys, recover } from './commands/service.ts'
import { verify } from './commands/verify.ts'
import { wallet } from './commands/wallet.ts'
import { watch } from './commands/watch.ts'
import { heartbeat, watchdog } from './commands/watchdog.ts'

const countersign: CommandGroup = {
  summary: 'check what a source verification service has signed, and call it',
  commands: {
    verify,
    cite,
    export: exportChain,
    watch,
    keys,
    ask,
    recover,
    batch,
    check,
    wallet,
    account,
    lease,
    receipt,
    watchdog,
    heartbeat,
    journal,
    citation,
  },
  examples: [
    'countersign keys https://service.example > keys.json',
    'countersign verify result.json --keys keys.json',
    'countersign cite result.json --format text-fragment',
    'countersign batch claims.csv --service https://service.example --dry-run',
    "countersign ask https://service.example --source https://example.org/ --claim 'It says so.' --dry-run",
    'countersign check report.md --service https://service.example --key key.txt',
    'countersign export https://service.example chain.jsonl && countersign verify chain.jsonl --keys keys.json',
  ],
  exitStatus: '0 good, 1 bad or refused, 2 wrong usage; watch: 1 an alarm, 3 the service could not be asked.',
}

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  try {
    return await start('countersign', countersign, args)
  } catch (error) {
    return explain(error, args.includes('--json'))
  }
}
