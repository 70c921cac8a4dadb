// All commands of the command line, and the handling of their errors.
import { account } from './account.ts'
import { batch } from './batch/batch.ts'
import { buy } from './buy/buy.ts'
import { check } from './check/check.ts'
import { citation } from './citation.ts'
import { cite } from './cite.ts'
import { type CommandGroup, type ExitStatus, start } from './command.ts'
import { exportChain } from './export.ts'
import { journal } from './journal.ts'
import { lease } from './lease.ts'
import { mcp } from './mcp/mcp.ts'
import { explain } from './output.ts'
import { receipt } from './receipt.ts'
import { replay } from './replay.ts'
import { ask, keys, recover } from './service.ts'
import { verify } from './verify/verify.ts'
import { wallet } from './wallet.ts'
import { watch } from './watch.ts'
import { heartbeat, watchdog } from './watchdog.ts'

export const countersign: CommandGroup = {
  summary: 'check what a source verification service has signed, and call it',
  commands: {
    verify,
    replay,
    cite,
    export: exportChain,
    watch,
    keys,
    ask,
    recover,
    buy,
    batch,
    check,
    mcp,
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
    "countersign buy https://example.org/ 'It says so.' --service https://service.example --wallet wallet.key",
    'countersign batch claims.csv --service https://service.example --dry-run',
    "countersign ask https://service.example --source https://example.org/ --claim 'It says so.' --dry-run",
    'countersign check report.md --service https://service.example --key key.txt',
    'countersign export https://service.example chain.jsonl && countersign verify chain.jsonl --keys keys.json',
  ],
  exitStatus:
    '0 good, 1 bad or refused, 2 wrong usage; watch, buy, batch, check and mcp have more, which their help names.',
}

/** Runs the command that the arguments name, on the streams of this process. Returns the exit status, and throws nothing. */
export async function main(args: string[]): Promise<ExitStatus> {
  try {
    return await start('countersign', countersign, args)
  } catch (error) {
    return explain(error, args.includes('--json'))
  }
}
