// Operator commands: npm run cli -- <command>. Exits 0 when all is well, 1 when not, 2 for a wrong call.
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { billingCommands } from './billing/commands.ts'
import { type Config, ConfigError, describeConfig, readConfig } from './config.ts'
import { renderConfigurationPage } from './configuration-page.ts'
import { findOpenDatabase } from './db/embedded.ts'
import { listMigrations, migrate } from './db/migrate.ts'
import { type Database, openDatabase, transact } from './db/pool.ts'
import { describeSchema } from './db/schema.ts'
import { type Finding, runDoctor } from './doctor.ts'
import { paymentCommands } from './payments/commands.ts'
import { logOrigin } from './receipts/checkpoint.ts'
import { rotate, verifyChain } from './receipts/commands.ts'
import { listKeys } from './receipts/keys.ts'

interface Command {
  /** Names of the required arguments. */
  takes?: string[]
  about: string
  run(config: Config, args: string[]): Promise<number>
}

const commands: Record<string, Command> = {
  migrate: {
    about: "Bring the database to this release's schema (the release step of a deployment). Safe to repeat.",
    async run(config) {
      const applied = await migrate(await databaseUrlOf(config))
      for (const name of applied) console.log(`applied ${name}`)
      console.log(`up to date: ${listMigrations().length} migrations`)
      return 0
    },
  },
  doctor: {
    about: 'Check configuration, database, migrations, keys, workers and Redis, and print a cure for each problem.',
    async run(config) {
      const findings = await runDoctor(config)
      for (const finding of findings) console.log(formatFinding(finding))
      return findings.every((finding) => finding.ok) ? 0 : 1
    },
  },
  config: {
    about: 'Print every variable with its value; secrets are masked.',
    async run(config) {
      for (const { name, value, default: fallback, about } of describeConfig(config))
        console.log(`${name}=${value}\n    ${about}${fallback ? ` (default ${fallback})` : ''}`)
      return 0
    },
  },
  'config --markdown': {
    about: 'Print docs/configuration.md: every variable with its default and its meaning.',
    async run() {
      process.stdout.write(renderConfigurationPage())
      return 0
    },
  },
  schema: {
    about: 'Print the schema of the database, in the form of sql/schema.sql.',
    run: (config) => withDatabase(config, async (db) => process.stdout.write(await describeSchema(db))),
  },
  keys: {
    about: 'List every public key that has ever signed.',
    run: (config) =>
      withDatabase(config, async (db) =>
        console.log(JSON.stringify(await transact(db, listKeys, { readOnly: true }), null, 2)),
      ),
  },
  'keys rotate': {
    takes: ['receipt|checkpoint|lease|webhook'],
    about: 'Replace a signing key; the present receipt key signs the introduction of the new one. Needs no restart.',
    run: (config, [use = '']) => withDatabase(config, (db) => rotate(db, config, logOrigin(config.baseUrl), use)),
  },
  'chain verify': {
    takes: ['links|signatures'],
    about:
      'Recompute the chain from the database: every hash, link and tree node, and with `signatures` also every signature.',
    run: (config, [mode = '']) => withDatabase(config, (db) => verifyChain(db, mode)),
  },
  ...Object.fromEntries(
    Object.entries({ ...paymentCommands, ...billingCommands }).map(([name, { run, ...rest }]) => [
      name,
      { ...rest, run: (config: Config, args: string[]) => withDatabase(config, (db) => run(db, config, args)) },
    ]),
  ),
  'sign-offline': {
    takes: ['PAYMENT-REQUIRED'],
    about: 'Sign the terms of a 402 with a new wallet that owns nothing, and print PAYMENT-SIGNATURE.',
    async run(_config, [terms = '']) {
      console.log(await signOffline(terms))
      return 0
    },
  },
}

/** Such a signature pays in offline mode, where every key pays, and is worthless on a chain. */
async function signOffline(terms: string): Promise<string> {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
  return encodePaymentSignatureHeader(await client.createPaymentPayload(decodePaymentRequiredHeader(terms.trim())))
}

async function withDatabase(config: Config, work: (db: Database) => Promise<unknown>): Promise<number> {
  const db = await openDatabase(await databaseUrlOf(config), { maxConnections: 1 })
  try {
    const status = await work(db)
    return typeof status === 'number' ? status : 0
  } finally {
    await db.end()
  }
}

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  // The name of a command has one word or two.
  const words = Object.hasOwn(commands, args.slice(0, 2).join(' ')) ? 2 : 1
  const name = args.length === 0 ? undefined : args.slice(0, words).join(' ')
  const rest = args.slice(words)
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command || rest.length !== (command.takes?.length ?? 0)) {
    const help = name === undefined || name === 'help' || name === '--help'
    ;(help ? console.log : console.error)(usage(help ? undefined : [name, ...rest].join(' ')))
    return help ? 0 : 2
  }
  try {
    return await command.run(readConfig(), rest)
  } catch (error) {
    console.error(error instanceof ConfigError || error instanceof Error ? error.message : error)
    return 1
  }
}

function usage(wrong?: string) {
  const calls = Object.entries(commands).map(([name, { takes = [], about }]) => ({
    call: [name, ...takes.map((argument) => `<${argument}>`)].join(' '),
    about,
  }))
  const width = Math.max(...calls.map(({ call }) => call.length))
  const lines = calls.map(({ call, about }) => `  ${call.padEnd(width)}  ${about}`)
  return `${wrong ? `"${wrong}" is not one of the commands.\n\n` : ''}npm run cli -- <command>\n\n${lines.join('\n')}`
}

function formatFinding({ ok, subject, detail, cure }: Finding) {
  return `${ok ? 'ok  ' : 'FAIL'} ${subject}: ${detail}${ok || !cure ? '' : `\n     cure: ${cure}`}`
}

async function databaseUrlOf({ databaseUrl, dataDir }: Config): Promise<string> {
  const url = databaseUrl ?? (await findOpenDatabase(dataDir))
  if (url === undefined) throw new Error(`DATABASE_URL is not set, and no \`npm start\` is running on ${dataDir}.`)
  return url
}
