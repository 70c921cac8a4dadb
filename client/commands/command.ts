// The type of a command: its operands, options, examples and help; and groups of commands. Arguments are read strictly: an
// option of another command is an error.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { UsageError } from '../arguments.ts'
import { fromEnvironment } from './environment.ts'
import { print, UNWRITTEN } from './output.ts'
import { INTERRUPTED } from './signals.ts'

/** Every exit status of the program. The table in client/README.md says what each means. */
export const EXIT_STATUSES = [0, 1, 2, 3, 4, 5, 6, UNWRITTEN, INTERRUPTED] as const
export type ExitStatus = (typeof EXIT_STATUSES)[number]

export interface Option {
  type: 'string' | 'boolean'
  /** Its description in the help, in one or several lines. */
  help: string
  /** The word for the value in the help; every `string` option has one. */
  value?: string
  short?: string
  multiple?: boolean
  default?: string | boolean
  /** The command writes the file that the value names. */
  isWritten?: true
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
  run(operands: string[], options: Values<O>): Promise<ExitStatus>
}

/** A command whose options' types are known to its `run` alone. */
export interface SingleCommand extends Omit<CommandDefinition<OptionTable>, 'run'> {
  start(operands: string[], options: object): Promise<ExitStatus>
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
export async function start(name: string, chosen: Command, args: readonly string[]): Promise<ExitStatus> {
  if (!('commands' in chosen)) return startSingle(name, chosen, args)
  const [word, ...rest] = args
  if (word === '--help' || word === '-h') return print(helpOf(name, chosen))
  const known = Object.keys(chosen.commands).join(', ')
  if (word === undefined) throw new UsageError(`After ${name} comes one of ${known}.`)
  if (word.startsWith('-')) throw new UsageError(`Options come after the command: after ${name} comes one of ${known}.`)
  const next = Object.hasOwn(chosen.commands, word) ? chosen.commands[word] : undefined
  if (!next) {
    const meant = nearest(word, Object.keys(chosen.commands))
    throw new UsageError(`There is no command ${word}.${didYouMean(meant)} After ${name} comes one of ${known}.`)
  }
  return await start(`${name} ${word}`, next, rest)
}

function startSingle(name: string, single: SingleCommand, args: readonly string[]): Promise<ExitStatus> {
  const { values, positionals } = read(name, single, args)
  if (values.help) return Promise.resolve(print(helpOf(name, single)))
  const required = single.operands.filter((operand) => !operand.startsWith('['))
  const most = single.operands.at(-1)?.endsWith('...]') ? Number.POSITIVE_INFINITY : single.operands.length
  const missing = required[positionals.length]
  if (missing !== undefined) throw new UsageError(`${missing} is missing. It is: ${usageOf(name, single)}`)
  if (positionals.length > most)
    throw new UsageError(`"${positionals[most]}" is one word too many. It is: ${usageOf(name, single)}`)
  const given = givenOf(single, positionals, values)
  checkNamed(given)
  checkApart(single, given)
  return single.start(positionals, values)
}

type Given = readonly [name: string, kind: string, value: unknown]

/** Every operand and option that was typed, with the word for its value in the help. */
function givenOf({ operands, options }: SingleCommand, positionals: readonly string[], values: object): Given[] {
  return [
    ...positionals.map((value, i) => [operands[i] ?? '', operands[i] ?? '', value] as const),
    ...Object.entries(values).flatMap(([name, value]) =>
      [value].flat().map((one) => [`--${name}`, options[name]?.value ?? '', one as unknown] as const),
    ),
  ]
}

/** Throws a UsageError where the name of a file or folder, or an address, is empty, as of a variable that is not set. */
function checkNamed(given: readonly Given[]): void {
  for (const [name, kind, value] of given)
    if (value === '' && /URL$/.test(kind)) throw new UsageError(`${name} is empty: it takes an address.`)
    else if (value === '' && NAMES_FILE.test(kind))
      throw new UsageError(`${name}: The name of a file or folder is empty.`)
}

/** Throws a UsageError where a file that is written has a second use: what is read there would be lost, or one of two outputs. */
function checkApart({ options }: SingleCommand, given: readonly Given[]): void {
  const isWritten = ([name]: Given) => options[name.slice(2)]?.isWritten === true
  const standIns = { wallet: 'COUNTERSIGN_WALLET', key: 'COUNTERSIGN_KEY' } as const
  const settings = Object.entries(standIns).flatMap(([option, name]): Given[] => {
    const isUsed = options[option] && !given.some(([one]) => one === `--${option}`)
    return isUsed ? [[name, 'FILE', fromEnvironment(name)]] : []
  })
  const nameOf = new Map<string, string>()
  // Those that are written come last, so that each is compared with all that are read.
  for (const one of [...settings, ...given.filter((one) => !isWritten(one)), ...given.filter(isWritten)]) {
    const [name, kind, value] = one
    const file = NAMES_FILE.test(kind) && typeof value === 'string' ? identityOf(value) : null
    if (file === null) continue
    if (isWritten(one) && nameOf.has(file))
      throw new UsageError(`${nameOf.get(file)} and ${name} name the same file: ${value}`)
    nameOf.set(file, name)
  }
}

/** The same for all names of a file. Null for what is no file, such as /dev/stdout. */
function identityOf(path: string): string | null {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found) return found.isFile() ? `${found.dev}:${found.ino}` : null
  } catch {
    // What is wrong with the path is said where the file is opened.
  }
  return resolve(path)
}

const NAMES_FILE = /FILE$|^(DIR|PACKAGE|RESULT|REPORT)$/

function read(name: string, single: SingleCommand, args: readonly string[]) {
  const options = everyOption(single) as NonNullable<ParseArgsConfig['options']>
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const [, wrong = ''] = /^Unknown option '(-[^']*)'/.exec(message) ?? []
    if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION' || wrong === '')
      throw new UsageError(message.replaceAll('\n', ' '), { cause })
    const known = Object.keys(options)
    const meant = didYouMean(
      nearest(
        wrong,
        known.map((one) => `--${one}`),
      ),
    )
    throw new UsageError(`Unknown option '${wrong}'.${meant || ` ${name} has --${known.join(', --')}.`}`, { cause })
  }
}

const didYouMean = (word: string | undefined) => (word === undefined ? '' : ` Did you mean ${word}?`)

/** The word that was probably meant: at most two letters, and fewer than half of them, are other ones. */
function nearest(typed: string, words: readonly string[]): string | undefined {
  const [best] = words
    .map((word) => ({ word, edits: distance(typed, word) }))
    .filter(({ word, edits }) => edits <= MOST_EDITS && edits * 2 < word.replace(/^-+/, '').length)
    .sort((a, b) => a.edits - b.edits)
  return best?.word
}

const MOST_EDITS = 2

/** How many letters must be put in, left out, replaced or swapped with the next (Damerau and Levenshtein). */
function distance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    const [above, twoAbove] = [rows[i - 1]!, rows[i - 2]]
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1]
      const isSwap = twoAbove !== undefined && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const swapped = isSwap ? twoAbove[j - 2]! + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (isSame ? 0 : 1), swapped))
    }
    rows.push(row)
  }
  return rows.at(-1)?.at(-1) ?? 0
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

const EXIT_STATUS = '0 good, 1 bad or refused, 2 wrong usage, or a question was answered with no.'
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
