// Every shell command of the guide and of the READMEs is run, in the order in which it is read, against a service that the guide's own
// lines start. A command that cannot run here is in NOT_RUN with the reason.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  copyFileSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import t from 'tap'
import { withoutAuditor } from '../auditor.ts'
import { BARE_ENV, startChild } from '../children.ts'
import { openTestDatabase } from '../database.ts'
import { Certificates, openAuthority } from '../time-stamp-authority.ts'
import { until } from '../until.ts'

const ROOT = join(import.meta.dirname, '../..')

/** In the order in which they run: a page uses what the pages before it have set. */
const FIRST = ['README.md', 'docs/guide/control-toolkit.md', 'client/README.md', 'client/sdk/README.md']
const PAGES = [...new Set([...FIRST, ...globSync('docs/guide/*.md', { cwd: ROOT }).sort()])]

/** Commands that do not run here, by how they begin, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm install && npm run demo': 'needs the registry; test/demo.test.ts runs the demo',
  'npm install && npm test': 'needs the registry, and would run this test',
  'npm start': 'would start a second service; the last line of "A page of your own" starts one in the same way',
  'ANTHROPIC_API_KEY=... npm start': 'needs a secret',
  'OPENAI_BASE_URL=http://127.0.0.1:11434': 'needs a model server',
  'npm install countersign-sdk': 'needs the registry; test/client/install.test.ts installs the packed library',
  'npm install @x402/fetch @x402/evm viem': 'needs the registry',
  'claude mcp add': 'needs a program of another maker; test/client/hosts.test.ts starts the server of such a line',
}

/** How the command begins that starts the service. The commands before it in its block make the page that it reads. */
const START = 'FIXTURE_HOSTS=page.test='
/** The hosts of all pages that commands name. */
const HOSTS = ['page.test', 'example.com', 'example.org']

/** Beside the text that the guide gives its page: what of example.com the claims are about. The verifier reads it for each of them. */
const EXAMPLE = `<p>This domain is for use in documentation examples without needing permission.</p>`

/** What a reader replaces by something of their own. */
const REPLACED: readonly [written: string, meant: string][] = [
  ['http://127.0.0.1:8402', '$SERVICE'],
  ['https://service.example', '$SERVICE'],
  ['ctk_...', '$(sed -n \'s/.*"api_key":"\\([^"]*\\)".*/\\1/p\' $LAST)'],
  ['<pubkey_hex>', '$FIRST_KEY'],
  ['<64 hex characters>', '$FIRST_KEY'],
  ["'<vkey>'", '"$CHECKPOINT_KEY"'],
  ['<vkey>', '"$CHECKPOINT_KEY"'],
  ['<verifier key>', '"$CHECKPOINT_KEY"'],
  ['<the SERIAL:HASH kept last time>', "$(grep -o '[0-9]*:[0-9a-f]\\{64\\}' $LAST)"],
  ['REQUEST_ID', '"$(basename $LOCATION)"'],
  ['--request ID', '--request "$(basename $LOCATION)"'],
  // Watching has no end of its own.
  [' watch ', ' watch --once '],
]

/** Exit statuses other than 0, by a part of the command, and what they mean. */
const EXITS: readonly [part: string, status: number, meaning: string][] = [
  ["buy https://example.org/ 'It says so.'", 1, 'the page does not say so'],
  ["'It may be used without permission.'", 1, 'the page supports one of the two claims'],
]

/** What a command prints, by a part of it. The other commands need only succeed. */
const PRINTS: readonly [part: string, printed: RegExp][] = [
  ['ask -H "PAYMENT-SIGNATURE', /"code":"processing"/],
  ["'Prefer: wait=20' $LOCATION", /"status":"completed".*"claim_support":"supports"/],
  ['client/cli.ts verify result.json --pin 1:<pubkey_hex>', /\ngood\n$/],
  ['--recompute', /\nok +recomputed: /],
  ['openssl pkeyutl', /^Signature Verified Successfully\n$/],
  ['countersign replay', /\nok +verdict: /],
  ['--through', /ok +through/],
  ['chain verify signatures', /ok +\d+ receipts: /],
  ['python3 test/auditor.py', /^good/],
  ['openssl ts -verify', /\bVerification: OK\n$/],
  ['openssl ts -reply', /Time stamp: /],
  ['--timestamp-ca roots.pem', /timestamp/],
  ["'This domain is for documentation examples.' --service", /^supports: The page says so$/m],
  ['$API/v1/quote-check', /"match":"exact".*"match":"near"/],
  ['$API/try', /^\{"claim_support":"supports"/],
  ['countersign check report.md', /: 2 citations, 1 page: 1 ok, 1 (unverified|supported)\. all hold\n/],
]

/** What a reader of the page has before its first command. */
const GIVEN: Readonly<Record<string, string>> = {
  'client/README.md': `
    umask 077
    printf %s "$TOKEN" > token.txt
    printf %s "$KEY" > key.txt
    printf 'source_url,claim\\nhttps://example.com/,This domain is for use in documentation examples.\\n' > claims.csv
    echo 'The page says "This domain is for use in documentation examples" ([Example](https://example.com/)).' > report.md
    echo 'It may be used [without needing permission](https://example.com/).' >> report.md
    echo '{}' > state.json
    cp report.md report.pdf`,
  'docs/guide/auditing.md': `
    rm chain.jsonl package.wacz
    curl -s -H "Authorization: Bearer $TOKEN" $LOCATION > result.json
    node -p 'JSON.stringify(JSON.parse(fs.readFileSync("result.json")).receipt.attestation)' > attestation.json`,
}

/** The packages are not installed, and a person says yes to each purchase. LAST is the file with the output of the command before. */
const PRELUDE = `
countersign() {
  case "$*" in
    buy*|batch*--wallet*|check*--wallet*) node client/cli.ts "$@" --yes ;;
    *) node client/cli.ts "$@" ;;
  esac
}
npx() { test "$1" = countersign && shift && countersign "$@"; }
`

/** Programs of the machine that the commands call. */
const MISSING = ['bash', 'curl', 'openssl', 'npm'].filter((name) => spawnSync(name, ['--version']).error)
const skip = MISSING.length > 0 ? `no ${MISSING.join(', ')} on this machine` : withoutAuditor

interface Command {
  page: string
  /** The commands of its block, itself among them. */
  block: Command[]
  text: string
}

/** The shell commands of a document, in their order. A command may have several lines. */
function commandsOf(page: string): Command[] {
  const commands: Command[] = []
  for (const [, kind = '', text = ''] of readFileSync(join(ROOT, page), 'utf8').matchAll(FENCED)) {
    if (!/^(sh|bash|shell|console)?$/.test(kind)) continue
    const block: Command[] = []
    let begun = ''
    for (const line of text.trimEnd().split('\n')) {
      begun += begun === '' ? line : `\n${line}`
      if (/^\s*(#.*)?$/.test(begun)) begun = ''
      if (begun === '' || !isWhole(begun)) continue
      block.push({ page, block, text: begun })
      begun = ''
    }
    if (begun !== '') throw new Error(`${page}: a command without an end: ${begun}`)
    commands.push(...block)
  }
  return commands
}

const FENCED = /^ *```(\w*)\n([\s\S]*?)^ *```$/gm

/** Whether a shell runs it without waiting for a further line. */
function isWhole(command: string): boolean {
  return !command.endsWith('\\') && spawnSync('bash', ['-n'], { input: meant(command) }).status === 0
}

function meant(command: string): string {
  return REPLACED.reduce((text, [written, real]) => text.replaceAll(written, () => real), command)
}

interface Done {
  status: number
  /** Both streams. */
  output: string
}

/** A shell that runs one command after another in a folder. It is ended with all that it has started. */
class Shell implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #statuses: AsyncIterator<string>
  readonly #folder: string
  readonly #name: string
  #count = 0

  constructor(folder: string, name: string, env: Record<string, string>) {
    // In a group of its own, which is ended as one: npm starts a shell, and that the service.
    this.#child = spawn('bash', { cwd: folder, env, stdio: ['pipe', 'ignore', 'inherit', 'pipe'], detached: true })
    this.#statuses = createInterface({ input: this.#child.stdio[3] as Readable })[Symbol.asyncIterator]()
    this.#folder = folder
    this.#name = name
  }

  async run(command: string): Promise<Done> {
    const file = this.begin(command)
    const { value } = await this.#statuses.next()
    return { status: Number(value), output: readFileSync(file, 'utf8') }
  }

  /** Does not wait for its end. @returns the file of its output */
  begin(command: string): string {
    const file = join(this.#folder, `${this.#name}-${this.#count++}.txt`)
    writeFileSync(file, '')
    this.#child.stdin?.write(`{ ${command}\n} >${file} 2>&1 </dev/null 3>&-; echo $? >&3; LAST=${file}\n`)
    return file
  }

  async [Symbol.asyncDispose]() {
    const closed = once(this.#child, 'close')
    if (this.#child.pid) process.kill(-this.#child.pid, 'SIGTERM')
    await closed
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

/** Starts the service by the lines of "A page of your own". @returns its address */
async function startByGuide(shell: Shell, lines: Command[]): Promise<string> {
  const port = await freePort()
  let started = ''
  for (const { text } of lines) {
    const command = text
      .replace('page.test=127.0.0.1:8443', HOSTS.map((name) => `${name}=127.0.0.1:${port}`).join())
      .replace('DNS:page.test', HOSTS.map((name) => `DNS:${name}`).join())
      .replace('listen(8443)', `listen(${port})`)
    if (text.startsWith(START)) started = shell.begin(command)
    else t.match(await shell.run(command), { status: 0 }, text)
  }
  return until(() => /Countersign is at (\S+)/.exec(readFileSync(started, 'utf8'))?.[1] ?? '')
}

/** A worker has the newest checkpoint stamped by an authority, whose root is then in the folder. */
async function stamp(folder: string, data: Record<string, string>) {
  using certificates = new Certificates()
  certificates.issue('authority')
  await using authority = await openAuthority(certificates, 'authority')
  copyFileSync(certificates.path('root.pem'), join(folder, 'roots.pem'))
  const settings = { TIMESTAMP_URLS: authority.url, TIMESTAMP_CA_FILE: certificates.path('root.pem') }
  await using worker = startChild('workers/main.ts', { ...data, ...settings, ASSESSMENT: 'literal' })
  await worker.logs('timestamp_stored')
}

t.test('every command of the guide runs, or is said not to run and why', { skip }, async (t) => {
  const commands = PAGES.flatMap(commandsOf)
  t.ok(commands.length > 60, `${commands.length} commands`)
  const isNamed = (part: string) => commands.some(({ text }) => text.includes(part))
  for (const [part] of [...REPLACED, ...EXITS, ...PRINTS]) t.ok(isNamed(part), `a command has: ${part}`)
  for (const [start, why] of Object.entries(NOT_RUN)) {
    const found = commands.some(({ text }) => text.startsWith(start))
    t.ok(found, `a command begins with what does not run, because it ${why}: ${start}`)
  }
  for (const page of Object.keys(GIVEN)) t.ok(PAGES.includes(page), page)

  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase())
  const folder = mkdtempSync(join(tmpdir(), 'countersign-guide-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of [
    'README.md',
    'client',
    'node_modules',
    'package.json',
    'server',
    'sql',
    'test',
    'workers',
    'docs',
  ])
    symlinkSync(join(ROOT, name), join(folder, name))
  const data = { DATABASE_URL: database.url, DATA_DIR: join(folder, 'data') }
  const env = { ...BARE_ENV, TMPDIR: folder, ...data }

  const starting = commands.find(({ text }) => text.startsWith(START))?.block ?? []
  const quiet = { PORT: '0', RATE_LIMIT_PER_MINUTE: '0', VERIFIER_THREADS: '1' }
  const service = await startByGuide(opened.use(new Shell(folder, 'service', { ...env, ...quiet })), starting)

  for (const page of globSync(join(folder, '*/page.html'))) appendFileSync(page, EXAMPLE)

  await until(async () => (await fetch(`${service}/readyz`)).ok)
  const { keys } = (await (await fetch(`${service}/v1/keys`)).json()) as { keys: Record<string, string>[] }
  const keyOf = (use: string) => keys.find((key) => key.use === use) ?? {}
  const copied = { FIRST_KEY: keyOf('receipt').pubkey_hex ?? '', CHECKPOINT_KEY: keyOf('checkpoint').vkey ?? '' }
  const shell = opened.use(new Shell(folder, 'reader', { ...env, ...copied, SERVICE: service }))
  t.match(await shell.run(PRELUDE), { status: 0 })
  for (const [n, command] of commands.entries()) {
    const { page, text } = command
    if (starting.includes(command) || Object.keys(NOT_RUN).some((start) => text.startsWith(start))) continue
    if (page !== commands[n - 1]?.page) {
      const given = await shell.run(`unset COUNTERSIGN_SERVICE COUNTERSIGN_KEY\n${GIVEN[page] ?? ''}`)
      t.equal(given.status, 0, `what a reader of ${page} has: ${given.output}`)
    }
    if (text.includes('/checkpoint/timestamp')) await stamp(folder, data)
    const { status, output } = await shell.run(meant(text))
    t.equal(status, EXITS.find(([part]) => text.includes(part))?.[1] ?? 0, `${page}: ${text}\n${output}`)
    for (const [, form] of PRINTS.filter(([part]) => text.includes(part))) t.match(output, form, `${page}: ${text}`)
  }
})
