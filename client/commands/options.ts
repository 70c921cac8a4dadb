// The options of the command line: one list for all commands, read strictly.
import { parseArgs } from 'node:util'
import { UsageError } from '../arguments.ts'

const OPTIONS = {
  keys: { type: 'string', multiple: true },
  pin: { type: 'string', multiple: true },
  introduced: { type: 'string', multiple: true },
  vkey: { type: 'string' },
  from: { type: 'string' },
  through: { type: 'string', multiple: true },
  tree: { type: 'string' },
  head: { type: 'string' },
  'last-signature': { type: 'boolean', default: false },
  once: { type: 'boolean', default: false },
  interval: { type: 'string', default: '60' },
  source: { type: 'string' },
  claim: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  token: { type: 'string' },
  format: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

export type Options = ReturnType<typeof readArguments>['values']

export interface Command {
  operands: number
  /** Returns the exit status. */
  run(operands: string[], options: Options): Promise<number>
}

/** Throws a UsageError. */
export function readArguments(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true })
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause })
  }
}
