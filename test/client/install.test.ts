// The client as users get it: packed, installed into an empty project, type-checked there, and the snippets of its README
// run on each version of Node on the path.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { answerWith, askForPayment, complete, play, TERMS } from './counterpart.ts'
import { issueResult, KEY_ID, pubkeyHex } from './issuer.ts'

const ROOT = join(import.meta.dirname, '../..')
const MODULES = join(ROOT, 'node_modules')
const DEPENDENCIES = ['@noble/ed25519', '@noble/hashes', 'canonicalize', 'csv-parse', 'csv-stringify']
/** The other packages that a buyer installs, and the compiler of the project. The client itself needs none of them. */
const OTHERS = ['@x402', '@solana', 'viem', '@types', 'ai', '@langchain', '@modelcontextprotocol', 'autoevals']

async function run(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}) {
  // npm's settings of the run that started this test are not those of the project.
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS|TAP)/i.test(name))
  const child: ChildProcess = spawn(command, args, { cwd, env: { ...Object.fromEntries(own), ...env } })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

async function succeed(...[command, args, ...rest]: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, ...rest)
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: exit ${code}\n${stdout}\n${stderr}`)
  return stdout
}

/** Packs the client beside copies of the files that its scripts read, so that the checkout is not changed. */
async function pack(folder: string): Promise<string[]> {
  mkdirSync(join(folder, 'packed'))
  for (const name of ['client', 'tsconfig.json', 'LICENSE'])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  symlinkSync(MODULES, join(folder, 'node_modules'))
  const options = ['pack', '--silent', '--pack-destination', join(folder, 'packed')]
  const tarballs = [await succeed('npm', options, join(folder, 'client'))]
  for (const name of DEPENDENCIES)
    tarballs.push(await succeed('npm', [...options, '--ignore-scripts', join(MODULES, name)], folder))
  return tarballs.map((name) => join(folder, 'packed', name.trim().split('\n').at(-1) ?? ''))
}

async function install(t: Test): Promise<string> {
  // Outside the repository, because inside it Node would find files that the tarball lacks.
  const folder = mkdtempSync(join(tmpdir(), 'countersign-client-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"name":"project","private":true,"type":"module"}')
  // The packing has node_modules beside the project, not above it.
  mkdirSync(join(folder, 'checkout'))
  await succeed(
    'npm',
    ['install', '--offline', '--no-audit', '--no-fund', ...(await pack(join(folder, 'checkout')))],
    project,
  )
  for (const name of OTHERS) symlinkSync(join(MODULES, name), join(project, 'node_modules', name))
  return project
}

const compile = (project: string, options: object, files: string[]) => {
  const strict = { strict: true, module: 'nodenext', target: 'es2022', rootDir: '.', ...options }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: strict, files }))
  // Each further checker would read the types of all packages again.
  return run(join(MODULES, '.bin/tsc'), ['-p', 'tsconfig.json', '--checkers', '1'], project)
}

/** Names that a snippet leaves to the reader, and their values in the test. */
const SETTINGS = [
  `import { readFileSync } from 'node:fs'`,
  `import type { Attestation, PinnedKey, VerificationResult } from '@countersign/client/verification'`,
  `const text = readFileSync('result.json', 'utf8')`,
  `const result = JSON.parse(text) as VerificationResult`,
  `const baseUrl = String(process.env.BASE_URL)`,
  `const privateKey = '0x${'11'.repeat(32)}'`,
  `const idempotencyKey = 'one-key-per-purchase'`,
  `const request = { headers: {} as Record<string, string> }`,
  `const body = new Uint8Array()`,
  `const secret = 'whsec_${Buffer.alloc(32).toString('base64')}'`,
  `const keys: PinnedKey[] = []`,
  `const respond = (status: number, reason: string) => console.log(status, reason)`,
].join('\n')

/** What a snippet needs besides, where it has this word. */
const FURTHER: [word: RegExp, lines: string[]][] = [
  [
    /^(?![\s\S]*const wallet)[\s\S]*\bwallet\b/,
    [
      `import { ExactEvmScheme } from '@x402/evm/exact/client'`,
      `import { wrapFetchWithPayment, x402Client } from '@x402/fetch'`,
      `import { privateKeyToAccount } from 'viem/accounts'`,
      `const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(privateKey)))`,
    ],
  ],
  [
    /generateText/,
    [
      `import { writeFileSync } from 'node:fs'`,
      `import type { Purchase } from '@countersign/client'`,
      `import { MockLanguageModelV4 } from 'ai/test'`,
      `const prompt = 'Is it so?'`,
      `const usage = {`,
      `  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },`,
      `  outputTokens: { total: 1, text: 1, reasoning: 0 },`,
      `}`,
      `const input = JSON.stringify({ source_url: 'https://example.org/bridge', claim: 'The bridge opened in 1932.' })`,
      `const called = { type: 'tool-call', toolCallId: 'c1', toolName: 'verify_source', input } as const`,
      `const said = { type: 'text', text: 'It is so.' } as const`,
      `const model = new MockLanguageModelV4({`,
      `  doGenerate: [`,
      `    { content: [called], finishReason: { unified: 'tool-calls', raw: undefined }, usage, warnings: [] },`,
      `    { content: [said], finishReason: { unified: 'stop', raw: undefined }, usage, warnings: [] },`,
      `  ],`,
      `})`,
    ],
  ],
  [
    /callTool/,
    [
      `import { Client } from '@modelcontextprotocol/sdk/client/index.js'`,
      `import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'`,
      `import { Server } from '@modelcontextprotocol/sdk/server/index.js'`,
      `import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js'`,
      `const question = { source_url: 'https://example.org/bridge', claim: 'The bridge opened in 1932.' }`,
      `const terms = ${JSON.stringify(TERMS)}`,
      `const server = new Server({ name: 'service', version: '1.0.0' }, { capabilities: { tools: {} } })`,
      `server.setRequestHandler(CallToolRequestSchema, ({ params }) =>`,
      `  params._meta?.['x402/payment']`,
      `    ? { content: [], structuredContent: { status: 'completed' } }`,
      `    : { content: [], structuredContent: terms, isError: true },`,
      `)`,
      `const [far, near] = InMemoryTransport.createLinkedPair()`,
      `const client = new Client({ name: 'host', version: '1.0.0' })`,
      `await Promise.all([server.connect(far), client.connect(near)])`,
    ],
  ],
]

/** The TypeScript blocks of README, each as a program. */
function snippets(): string[] {
  const readme = readFileSync(join(ROOT, 'client/README.md'), 'utf8')
  return [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => {
    const real = code.replace(`key_id: 1, pubkey_hex: '...'`, `key_id: ${KEY_ID}, pubkey_hex: '${pubkeyHex}'`)
    const lines = real.split('\n')
    const isImport = (line: string) => line.startsWith('import ')
    const imports = lines.filter(isImport).join('\n')
    const rest = lines.filter((line) => !isImport(line)).join('\n')
    if (/^export function/m.test(rest)) return `${imports}\n${rest}\n${GATEWAY}`
    const more = FURTHER.filter(([word]) => word.test(rest)).map(([, lines]) => lines.join('\n'))
    const body = rest.replace('export default', 'void')
    return `${imports}\n${SETTINGS}\n${more.join('\n')}\nasync function main() {\n${body}\n}\nawait main()\n`
  })
}

/** Calls the gateway of README while its service does not answer. */
const GATEWAY = `console.log(await buildGateway('http://127.0.0.1:9', 'key', 'account', [])('lease', 'agent', 1))`

/** What each snippet prints, in their order. */
const PRINTED = [
  /^ok json|^ok plain_json/,
  /^no_lease$/m,
  /^401 /,
  /^mixed \d+ crt_/,
  /^lease-1 \{/,
  /^https:.*:~:text=/,
  /^It is so\.$/m,
  /^\{ status: 'completed' \}$/m,
  /^\{ ?\n? *name: 'Citation',\s+score: 0\.5,/,
]
/** Snippets that buy. */
const BUYING = [3, 6, 8]

/** The programs called node of each major version, by their versions: this one, and those on the path. */
async function nodes(): Promise<Map<string, string>> {
  const found = new Map([[process.versions.node, process.execPath]])
  for (const folder of new Set([...(process.env.PATH ?? '').split(':'), '/usr/local/bin', '/usr/bin'])) {
    const program = join(folder, 'node')
    const version = await succeed(program, ['-p', 'process.versions.node'], ROOT).catch(() => null)
    if (version && Number.parseInt(version, 10) >= 22) found.set(version.trim(), program)
  }
  return found
}

const answer = (body: object, status = 200) => answerWith(status, JSON.stringify(body))

/** Their types are a framework's, which needs the types of Node and fails with exactOptionalPropertyTypes by itself. */
const OF_FRAMEWORKS: ReadonlySet<string> = new Set(['./ai-sdk', './langchain'])

t.test('the tarball in an empty project', async (t) => {
  const project = await install(t)
  const versions = await nodes()

  await t.test('types pass a strict check, libraries included', async (t) => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'client/package.json'), 'utf8'))
    const paths = Object.keys(exports).filter((path) => path !== './package.json' && !OF_FRAMEWORKS.has(path))
    const imports = paths.map((path, i) => `import * as m${i} from '${join('@countersign/client', path)}'`)
    const use = `const service = new m0.Countersign({ baseUrl: 'https://service.example', apiKey: 'ctk_' })
export const usage: Promise<m0.Usage> = service.getUsage()
// @ts-expect-error: an input that the service would refuse
void service.grantLease({ agent: 'a' })
export const all = [${paths.map((_, i) => `m${i}`).join(', ')}]`
    writeFileSync(join(project, 'consumer.ts'), `${imports.join('\n')}\n${use}\n`)
    const options = { skipLibCheck: false, noEmit: true, exactOptionalPropertyTypes: true, types: [] }
    const { code, stdout } = await compile(project, { ...options, lib: ['es2022', 'dom', 'dom.iterable'] }, [
      'consumer.ts',
    ])
    t.equal(code, 0, stdout)
    t.ok(paths.length >= 8)
  })

  await t.test('so do those of the frameworks, beside the types of Node', async (t) => {
    const lines = [...OF_FRAMEWORKS].map((path, i) => `export * as m${i} from '${join('@countersign/client', path)}'`)
    const misuse = `import { verifySourceTool } from '@countersign/client/ai-sdk'
// @ts-expect-error: a service is a client or the options of one
void verifySourceTool({ service: 'https://service.example' })`
    writeFileSync(join(project, 'frameworks.ts'), `${misuse}\n${lines.join('\n')}\n`)
    const options = { skipLibCheck: false, noEmit: true, types: ['node'], lib: ['es2022', 'dom', 'dom.iterable'] }
    const { code, stdout } = await compile(project, options, ['frameworks.ts'])
    t.equal(code, 0, stdout.slice(0, 2000))
  })

  await t.test('the snippets of README run', async (t) => {
    const programs = snippets()
    const names = programs.map((code, i) => {
      writeFileSync(join(project, `snippet${i}.ts`), code)
      return `snippet${i}.ts`
    })
    t.equal(programs.length, PRINTED.length)
    const types = { types: ['node'], lib: ['es2024', 'dom', 'dom.iterable'], skipLibCheck: true, outDir: 'out' }
    const { code, stdout } = await compile(project, types, names)
    t.equal(code, 0, stdout)
    writeFileSync(join(project, 'result.json'), JSON.stringify(issueResult()))
    for (const [version, node] of versions)
      for (const [i, printed] of PRINTED.entries()) {
        const script = [
          ...(BUYING.includes(i) ? [askForPayment(), askForPayment(), complete()] : []),
          ...(i === 4 ? [answer({ api_key: 'ctk_' }, 201), answer({ lease: { lease_id: 'lease-1' } }, 201)] : []),
          ...(i === 4 ? [answer({}), answer({}, 201), answer({ used: { receipts_today: 1 } })] : []),
        ]
        const { baseUrl } = await play(t, ...script)
        const ran = await run(node, [`out/snippet${i}.js`], project, { BASE_URL: baseUrl })
        t.match(ran, { code: 0, stderr: '', stdout: printed }, `snippet ${i} on Node ${version}`)
        t.notMatch(ran.stdout, /FAIL/)
      }
  })

  await t.test('the command line runs', async (t) => {
    const bin = join(project, 'node_modules/.bin/countersign')
    for (const [version, node] of versions) {
      const path = `${dirname(node)}:${process.env.PATH}`
      t.match(await succeed(bin, ['--help'], project, { PATH: path }), 'Examples:', version)
      const args = ['verify', 'result.json', '--pin', `${KEY_ID}:${pubkeyHex}`]
      t.match(await succeed(bin, args, project, { PATH: path }), /\ngood\n$/, version)
    }
  })

  await t.test('without a parser, check names what to install', async (t) => {
    const bin = join(project, 'node_modules/.bin/countersign')
    const given = { COUNTERSIGN_SERVICE: 'http://127.0.0.1:9', COUNTERSIGN_KEY: 'ctk_none' }
    for (const [name, packages] of [
      ['report.md', 'mdast-util-from-markdown mdast-util-gfm micromark-extension-gfm'],
      ['report.html', 'parse5'],
    ] as const) {
      writeFileSync(join(project, name), '<p>text')
      const { code, stdout, stderr } = await run(bin, ['check', name], project, given)
      t.same([code, stdout], [2, ''])
      t.equal(stderr.split('\n')[0], `countersign: To read ${name}, install a parser: npm install ${packages}`)
    }
  })

  const has22 = [...versions.keys()].some((version) => version.startsWith('22.'))
  await t.test('all of it on Node 22', { skip: has22 ? false : 'there is no Node 22 on the path' }, async (t) => {
    t.ok(has22, 'the tests above ran on it')
  })
})
