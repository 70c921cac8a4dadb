// The type of a command: its operands, options, examples and help; and groups of commands. Arguments are read strictly: an
// option of another command is an error.
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { UsageError } from '../arguments.ts'
import { print, UNWRITTEN } from './output.ts'

export interface Option {
  type: 'string' | 'boolean'
  /** Its description in the help, in one or several lines. */
  help: string
  /** The word for the value in the help; every `string` option has one. */
  value?: string
  short?: string
  multiple?: boolean
  default?: string | boolean
}

export type OptionTable = Readonly<Record<string, Option>>

type ParsedConfig<O extends OptionTable> = { options: O & typeof COMMON; allowPositionals: true }

/** The options as `run` gets them: a string, a boolean, or a list of one of these, each undefined where it is not given. */
export type Values<O extends OptionTable> = ReturnType<typeof parseArgs<ParsedConfig<O>>>['values']

export interface CommandDefinition<O extends OptionTable> {
  /** What it does, as one line in the list of all commands; no full stop. */
  summary: string
  /** The names of the operands in order: `FILE`, `[FILE]` for one that may be left out, `[FILE...]` for any number at the end. */
  operands: readonly string[]
  /** The options that the usage line shows after the operands, such as `--source URL --claim TEXT`. */
  usage?: string
  /** Paragraphs for the command's own help. */
  about?: string
  /** Whole command lines. */
  examples: readonly string[]
  /** What each exit status means, where a command has others than 0 good, 1 bad or refused, 2 wrong usage. */
  exitStatus?: string
  options: O
  /** False where there is no `--json` but one of its own. */
  json?: false
  /** Returns the exit status: 0 good, 1 bad or refused. Throws a UsageError for wrong usage. */
  run(operands: string[], options: Values<O>): Promise<number>
}

/** A command whose options' types are known to its `run` alone. */
export interface SingleCommand extends Omit<CommandDefinition<OptionTable>, 'run'> {
  start(operands: string[], options: object): Promise<number>
}

/** Commands under a common first word, as `wallet new` and `wallet address`. */
export interface CommandGroup {
  summary: string
  about?: string
  commands: Readonly<Record<string, Command>>
  examples: readonly string[]
  exitStatus?: string
}

export type Command = SingleCommand | CommandGroup

const COMMON = {
  json: { type: 'boolean', help: 'results as JSON on standard output, errors as JSON on standard error' },
  help: { type: 'boolean', short: 'h', help: 'this text' },
} as const satisfies OptionTable

/**
 * Defines one command. Each has `--help` besides its own options, and `--json` unless it says otherwise. A command with heavy imports loads them in
 * `run`, so that the other commands start without them.
 */
export function command<const O extends OptionTable>({ run, ...rest }: CommandDefinition<O>): SingleCommand {
  return { ...rest, start: (operands, options) => run(operands, options as Values<O>) }
}

/**
 * Runs the command that the arguments name, or prints its help. `name` is what was typed before the arguments. Returns the
 * exit status. Throws a UsageError, and what the command throws.
 */
export async function start(name: string, chosen: Command, args: readonly string[]): Promise<number> {
  if (!('commands' in chosen)) return startSingle(name, chosen, args)
  const [word, ...rest] = args
  if (word === '--help' || word === '-h') return print(helpOf(name, chosen))
  const known = Object.keys(chosen.commands).join(', ')
  if (word === undefined) throw new UsageError(`After ${name} comes one of ${known}.`)
  if (word.startsWith('-')) throw new UsageError(`Options come after the command: after ${name} comes one of ${known}.`)
  const next = Object.hasOwn(chosen.commands, word) ? chosen.commands[word] : undefined
  if (!next) throw new UsageError(`There is no command ${word}. After ${name} comes one of ${known}.`)
  return await start(`${name} ${word}`, next, rest)
}

function startSingle(name: string, single: SingleCommand, args: readonly string[]): Promise<number> {
  const { values, positionals } = read(single, args)
  if (values.help) return Promise.resolve(print(helpOf(name, single)))
  const required = single.operands.filter((operand) => !operand.startsWith('['))
  const most = single.operands.at(-1)?.endsWith('...]') ? Number.POSITIVE_INFINITY : single.operands.length
  if (positionals.length < required.length || positionals.length > most)
    throw new UsageError(`It is: ${usageOf(name, single)}`)
  return single.start(positionals, values)
}

function read(single: SingleCommand, args: readonly string[]) {
  const options = everyOption(single) as NonNullable<ParseArgsConfig['options']>
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (cause) {
    throw new UsageError((cause as Error).message.replaceAll('\n', ' '), { cause })
  }
}

const everyOption = ({ options, json }: Pick<SingleCommand, 'options' | 'json'>): OptionTable => ({
  ...options,
  ...(json === false ? { help: COMMON.help } : COMMON),
})

/** `countersign verify FILE (--keys FILE | --pin KEYID:HEX)...` */
function usageOf(name: string, { operands, usage }: SingleCommand): string {
  return [name, ...operands, ...(usage ? [usage] : [])].join(' ')
}

/** The usage and summary of a command, or of each command in a group. */
function* overviewOf(name: string, chosen: Command, depth = Number.POSITIVE_INFINITY): Generator<[string, string]> {
  if (!('commands' in chosen)) yield [usageOf(name, chosen), chosen.summary]
  else if (depth === 0) yield [`${name} ${Object.keys(chosen.commands).join('|')}`, chosen.summary]
  else for (const [word, one] of Object.entries(chosen.commands)) yield* overviewOf(`${name} ${word}`, one, depth - 1)
}

/** The help of a command or of a group, which was named `name`. */
export function helpOf(name: string, chosen: Command): string {
  return 'commands' in chosen ? helpOfGroup(name, chosen) : helpOfCommand(name, chosen)
}

function helpOfGroup(name: string, group: CommandGroup): string {
  const rows = Object.entries(group.commands).flatMap(([word, one]) => [
    ...overviewOf(`${name} ${word}`, one, name.includes(' ') ? undefined : 0),
  ])
  return sections(
    `${name}: ${group.summary}`,
    twoColumns(rows, 60),
    group.about,
    `${name} COMMAND --help explains one command, with its options and examples.`,
    examples(group.examples),
    `Every command:\n\n${twoColumns(optionRows(COMMON))}`,
    `Exit status: ${group.exitStatus ?? EXIT_STATUS}\n${UNWRITTEN_STATUS}`,
  )
}

function helpOfCommand(name: string, single: SingleCommand): string {
  return sections(
    usageOf(name, single),
    sentence(single.summary),
    single.about,
    `Options:\n\n${twoColumns(optionRows(everyOption(single)))}`,
    examples(single.examples),
    `Exit status: ${single.exitStatus ?? EXIT_STATUS}\n${UNWRITTEN_STATUS}`,
  )
}

const EXIT_STATUS = '0 good, 1 bad or refused, 2 wrong usage.'
const UNWRITTEN_STATUS = `${UNWRITTEN} in place of 0, where standard output cannot be written.`

const sections = (...all: (string | undefined)[]) => `${all.filter(Boolean).join('\n\n')}\n`
const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
const examples = (lines: readonly string[]) => `Examples:\n\n${lines.map((line) => `  ${line}`).join('\n')}`

function optionRows(options: OptionTable): [string, string][] {
  return Object.entries(options).map(([name, { value, short, help }]) => [
    `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`,
    help,
  ])
}

/** Lines of the second column stay in it; a first column that is wider than `widest` gets a line of its own. */
function twoColumns(rows: readonly (readonly [string, string])[], widest = 24): string {
  const width = Math.max(...rows.map(([left]) => left.length).filter((length) => length <= widest), 0)
  return rows
    .map(([left, right]) => {
      const lines = right.split('\n').join(`\n${' '.repeat(width + 4)}`)
      return left.length > width ? `  ${left}\n${' '.repeat(width + 4)}${lines}` : `  ${left.padEnd(width)}  ${lines}`
    })
    .join('\n')
}
