// The index of the operator's commands: `npm run cli -- <command>`. Each command is in the room of its subject, most in
// server/operate/. Exit status 0 when all is well, 1 when not, 2 for a wrong call, 74 when standard output
// cannot be written.
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { billingCommands } from './billing/commands.ts'
import { type Config, describeConfig, readConfig } from './config.ts'
import { renderConfigurationPage } from './configuration-page.ts'
import { isConnectionLoss } from './db/connection-loss.ts'
import { listMigrations, migrate } from './db/migrate.ts'
import { type Database, openDatabase, transact } from './db/pool.ts'
import { describeSchema } from './db/schema.ts'
import { type Finding, runDoctor } from './doctor.ts'
import { findOpenDatabase } from './embedded/postgres.ts'
import { AppError, UnavailableError } from './errors.ts'
import { accountCommands } from './operate/commands/accounts.ts'
import { auditCommands } from './operate/commands/audit.ts'
import { type CommandCall, type CommandOption, printJson, UsageError } from './operate/commands/command.ts'
import { jobCommands } from './operate/commands/jobs.ts'
import { processCommands } from './operate/commands/processes.ts'
import { requestCommands } from './operate/commands/requests.ts'
import { printRunningSettings } from './operate/commands/running.ts'
import { statusCommands } from './operate/commands/status.ts'
import { paymentCommands } from './payments/commands.ts'
import { logOrigin } from './receipts/checkpoint.ts'
import { rotate, verifyChain } from './receipts/commands.ts'
import { listKeys } from './receipts/keys.ts'

interface Command {
  /** Names of the required arguments. */
  takes?: readonly string[]
  options?: Readonly<Record<string, CommandOption>>
  about: string
  run(config: Config, call: CommandCall): Promise<number>
}

type DatabaseCommand = Omit<Command, 'run'> & {
  run(db: Database, config: Config, call: CommandCall): Promise<number>
}

/** Options of every command. */
const COMMON: Readonly<Record<string, CommandOption>> = {
  json: { about: 'print JSON' },
  yes: { about: 'do not ask' },
  help: { about: 'print this' },
}

const commands: Record<string, Command> = {
  ...onDatabase(statusCommands),
  migrate: {
    about: "Bring the database to this release's schema (the release step of a deployment). Safe to repeat.",
    async run(config, { json }) {
      const url = config.databaseDirectUrl ?? (await databaseUrlOf(config))
      const applied = await connecting(() => migrate(url))
      if (json) {
        printJson({ applied, migrations: listMigrations().length })
        return 0
      }
      for (const name of applied) console.log(`applied ${name}`)
      console.log(`up to date: ${listMigrations().length} migrations`)
      return 0
    },
  },
  doctor: {
    about:
      'Check configuration, database, migrations, keys, workers, model and Redis, and print a cure for each problem.',
    options: {
      shell: { about: 'check the settings of this shell, and not those of the running service' },
      listing: { about: 'instead, check at BASE_URL what catalogues of paid services require' },
    },
    async run(config, { json, options }) {
      // Its libraries take a tenth of a command's start, so only this option loads them.
      const findings = options.listing
        ? await (await import('./listing.ts')).checkListing(config)
        : await runDoctor(config, { shell: options.shell === true })
      if (json) printJson(findings)
      else for (const finding of findings) console.log(formatFinding(finding))
      return findings.every((finding) => finding.ok) ? 0 : 1
    },
  },
  config: {
    options: {
      markdown: { about: 'print docs/configuration.md: every variable with its default and its meaning' },
      running: { about: 'the values of the running processes, and where they differ' },
    },
    about: 'Print every variable with its value in this shell; secrets are masked.',
    async run(config, call) {
      if (call.options.markdown && call.json)
        throw new UsageError('config: --markdown prints a document. Leave out --json or --markdown.')
      if (call.options.markdown) process.stdout.write(renderConfigurationPage())
      else if (call.options.running) return withDatabase(config, (db) => printRunningSettings(db, call))
      else if (call.json) printJson(describeConfig(config))
      else
        for (const { name, value, default: fallback, about } of describeConfig(config))
          console.log(`${name}=${value}\n    ${about}${fallback ? ` (default ${fallback})` : ''}`)
      return 0
    },
  },
  schema: {
    about: 'Print the schema of the database, in the form of sql/schema.sql.',
    run: (config, { json }) =>
      withDatabase(config, async (db) => {
        const schema = await describeSchema(db)
        if (json) printJson({ schema })
        else process.stdout.write(schema)
        return 0
      }),
  },
  keys: {
    about: 'List every public key that has ever signed, as JSON.',
    run: (config) => withDatabase(config, async (db) => printJson(await transact(db, listKeys, { readOnly: true }))),
  },
  'keys rotate': {
    takes: ['receipt|checkpoint|lease|webhook'],
    about:
      'Replace a signing key; the current receipt key signs the introduction of the new one. Needs no restart. ' +
      'Asks for confirmation, except with --yes.',
    run: (config, call) => withDatabase(config, (db) => rotate(db, config, logOrigin(config.baseUrl), call)),
  },
  'chain verify': {
    takes: ['links|signatures'],
    about:
      'Recompute the chain from the database: every hash, link and tree node, and with `signatures` also every signature.',
    run: (config, call) => withDatabase(config, (db) => verifyChain(db, call)),
  },
  ...onDatabase(auditCommands),
  ...onDatabase(requestCommands),
  ...onDatabase(jobCommands),
  ...onDatabase(processCommands),
  ...onDatabase(accountCommands),
  ...onDatabase(paymentCommands),
  ...onDatabase(billingCommands),
  'sign-offline': {
    takes: ['PAYMENT-REQUIRED'],
    about: 'Sign the terms of a 402 with a new wallet that owns nothing, and print PAYMENT-SIGNATURE.',
    async run(_config, { args: [terms = ''], json }) {
      // Its libraries take most of a second to load, so only this command loads them.
      const { signOffline } = await import('./payments/sign-offline.ts')
      const payment_signature = await signOffline(terms)
      if (json) printJson({ payment_signature })
      else console.log(payment_signature)
      return 0
    },
  },
}

function onDatabase(found: Record<string, DatabaseCommand>): Record<string, Command> {
  return Object.fromEntries(
    Object.entries(found).map(([name, { run, ...rest }]) => [
      name,
      { ...rest, run: (config: Config, call: CommandCall) => withDatabase(config, (db) => run(db, config, call)) },
    ]),
  )
}

const AWAY = 'The database of the service does not answer.'

async function withDatabase(config: Config, work: (db: Database) => Promise<unknown>): Promise<number> {
  const url = await databaseUrlOf(config)
  const options = { maxConnections: 1, pooled: config.databaseDirectUrl !== undefined }
  const db = await connecting(() => openDatabase(url, options))
  try {
    const status = await work(db)
    return typeof status === 'number' ? status : 0
  } finally {
    await db.end()
  }
}

/** Throws an UnavailableError where the database cannot be reached. */
async function connecting<T>(connect: () => Promise<T>): Promise<T> {
  try {
    return await connect()
  } catch (cause) {
    if (!isConnectionLoss(cause) && !isUnreachable(cause)) throw cause
    throw new UnavailableError('provider_unavailable', AWAY, { cause })
  }
}

/** There is no such host, it does not answer, or what answers is not Postgres; only of a connection that was never there. */
function isUnreachable(error: unknown): boolean {
  return (
    error instanceof Error &&
    (/^(ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/.test(codeOf(error) ?? '') ||
      /timeout expired|Connection terminated|unexpected message/i.test(error.message))
  )
}

/** Runs the command that the arguments name, on the streams of this process. Returns the exit status, and throws nothing. */
export async function main(args: string[]): Promise<number> {
  if (args.length === 0 || HELP.has(args[0] ?? '')) {
    console.log(usage(Object.keys(commands)))
    return 0
  }
  try {
    const { name, command, call } = readCall(args)
    if (call.options.help) {
      console.log(usage([name]))
      return 0
    }
    return await command.run(readConfig(), call)
  } catch (error) {
    const isUsage = error instanceof UsageError || (error instanceof AppError && error.code === 'invalid_request')
    const message = describeProblem(error)
    const code =
      error instanceof AppError || error instanceof UnavailableError ? error.code : isUsage ? 'wrong_usage' : 'failed'
    console.error(args.includes('--json') ? JSON.stringify({ error: { code, message } }) : message)
    return isUsage ? 2 : 1
  }
}

const HELP: ReadonlySet<string> = new Set(['help', '--help', '-h'])

/** Throws UsageError, which shows the help of the command that was probably meant. */
function readCall(args: string[]) {
  // The name of a command has one word or two.
  const two = args.slice(0, 2).join(' ')
  const name = Object.hasOwn(commands, two) ? two : (args[0] ?? '')
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    const group = Object.keys(commands).filter((other) => other.startsWith(`${args[0]} `))
    const wrong =
      group.length > 0 && args.length === 1 ? `${args[0]} needs one more word` : `"${two}" is not one of the commands`
    throw new UsageError(`${wrong}.\n\n${usage(group.length > 0 ? group : Object.keys(commands))}`)
  }
  const { options = {}, takes = [] } = command
  const known = { ...COMMON, ...options }
  const { values, positionals } = parse(name, args.slice(name.split(' ').length), known)
  if (positionals.length !== takes.length && !values.help) {
    const given = positionals.length === 0 ? 'none was given' : `"${positionals.join(' ')}" was given`
    // The second word may have been meant as that of a command.
    const wrong =
      takes.length === 0
        ? `no argument: "${[name, ...positionals].join(' ')}" is not one of the commands`
        : `${takes.map((one) => `<${one}>`).join(' ')}, and ${given}`
    throw new UsageError(`${name} takes ${wrong}.\n\n${usage([name])}`)
  }
  const confirm = async (question: string) => values.yes === true || askPerson(question)
  const call: CommandCall = { args: positionals, options: values, json: values.json === true, confirm }
  return { name, command, call }
}

function parse(name: string, args: string[], known: Readonly<Record<string, CommandOption>>) {
  const options = Object.fromEntries(
    Object.entries(known).map(([option, { value }]) => [
      option,
      { type: value ? 'string' : 'boolean', ...(option === 'help' && { short: 'h' }) } as const,
    ]),
  )
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    // The cast is safe: a switch that is given is true, and no option is repeatable.
    return { values: values as Record<string, string | true | undefined>, positionals }
  } catch (error) {
    const [sentence] = error instanceof Error ? error.message.split(/\.\s/) : []
    throw new UsageError(`${name}: ${sentence}.\n\n${usage([name])}`)
  }
}

async function askPerson(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) {
    console.error(`${question}\nThere is no terminal to ask this: repeat the command with --yes.`)
    return false
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await terminal.question(`${question}\nType yes to go on: `)).trim().toLowerCase() === 'yes'
  } finally {
    terminal.close()
  }
}

function usage(names: readonly string[]) {
  const calls = names.flatMap((name) => {
    const { takes = [], about, options = {} } = commands[name] ?? { about: '' }
    const shown = { call: [name, ...takes.map((argument) => `<${argument}>`)].join(' '), about }
    const more = Object.entries(options).map(([option, { value, about }]) => ({
      call: `    --${option}${value ? ` ${value}` : ''}`,
      about,
    }))
    return [shown, ...more]
  })
  const width = Math.max(...calls.map(({ call }) => call.length))
  const lines = calls.map(({ call, about }) => `  ${call.padEnd(width)}  ${about}`)
  const common =
    '--json prints JSON and nothing else, an error on standard error. --yes skips the question of a command. --help explains the command.'
  return `npm run cli -- <command>\n\n${lines.join('\n')}\n\n${common}`
}

/** A known cause with its cure; for any other error its message. */
function describeProblem(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = codeOf(error)
  if (code === '42P01' || code === '42703') return `${error.message}. Run \`npm run cli -- migrate\` first.`
  if (error instanceof AppError) return error.message
  const reason = error.cause instanceof Error ? describeProblem(error.cause) : undefined
  if (error.name === 'UnavailableError') return `${error.message}${reason ? ` ${reason}` : ''}\n${REACH}`
  if (error.name === 'AggregateError' || error.message === '') return code ?? error.name
  return error.message
}

const REACH = 'cure: check DATABASE_URL, and that the server accepts connections from here'

function codeOf(error: Error): string | undefined {
  if ('code' in error && typeof error.code === 'string') return error.code
  return error.cause instanceof Error ? codeOf(error.cause) : undefined
}

function formatFinding({ ok, subject, detail, cure }: Finding) {
  return `${ok ? 'ok  ' : 'FAIL'} ${subject}: ${detail}${ok || !cure ? '' : `\n     cure: ${cure}`}`
}

async function databaseUrlOf({ databaseUrl, dataDir }: Config): Promise<string> {
  const url = databaseUrl ?? (await findOpenDatabase(dataDir))
  if (url === undefined) throw new Error(`DATABASE_URL is not set, and no \`npm start\` is running on ${dataDir}.`)
  return url
}
