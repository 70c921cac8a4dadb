// The question before an action that cannot be undone.
import { createInterface } from 'node:readline/promises'
import { UsageError, visible } from '../arguments.ts'
import { note } from './output.ts'

export const YES = { type: 'boolean', help: 'do not ask' } as const

/**
 * Asks on the terminal and returns the answer. Without a terminal, and without `yes`, it throws a UsageError: a script must
 * confirm with `--yes`.
 */
export async function confirm(question: string, yes: boolean | undefined): Promise<boolean> {
  if (yes) return true
  if (!process.stdin.isTTY) throw new UsageError(`${visible(question)} Repeat with --yes to do it.`)
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Control-D gives no answer, and is none.
  const closed = new AbortController()
  terminal.once('close', () => closed.abort())
  try {
    const answer = await terminal.question(`${visible(question)} [y/N] `, { signal: closed.signal }).catch(() => '')
    if (/^y(es)?$/i.test(answer.trim())) return true
    note('Nothing was done.\n')
    return false
  } finally {
    terminal.close()
  }
}
