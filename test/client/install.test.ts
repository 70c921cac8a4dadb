// The client as users get it: packed, installed into an empty project, type-checked there, and the snippets of its README
// run on each version of Node that its manifest admits.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { answerWith, askForPayment, complete, play, TERMS } from './counterpart.ts'
import { issueResult, KEY_ID, pubkeyHex } from './issuer.ts'
import { layOut, MAJORS, MODULES, nodeOf, openProject, pack, ROOT, run } from './packing.ts'

/** The other packages that a buyer installs, and the compiler of the project. The client itself needs none of them. */
const OTHERS = ['@x402', '@solana', 'viem', '@types', 'ai', '@langchain', '@modelcontextprotocol', 'autoevals']

const compile = (project: string, options: object, files: string[]) => {
  const strict = { strict: true, module: 'nodenext', target: 'es2022', rootDir: '.', ...options }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: strict, files }))
  // Each further checker would read the types of all packages again.
  return run(join(MODULES, '.bin/tsc'), ['-p', 'tsconfig.json', '--checkers', '1'], project)
}

/** Names that a snippet leaves to the reader, and their values in the test. */
const SETTINGS = [
  `import { readFileSync } from 'node:fs'`,
  `import type { Attestation, PinnedKey, VerificationResult } from 'countersign-sdk/verification'`,
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
      `import type { Purchase } from 'countersign-sdk'`,
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

/** The TypeScript blocks of the guide, each as a program. Those of README are among them. */
function snippets(): string[] {
  const guide = readFileSync(join(ROOT, 'docs/guide/sdk.md'), 'utf8')
  return [...guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => {
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

/** Calls the gateway of the guide while its service does not answer. */
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
/** Runs the snippets one after another in one process, in which each finds its own service. */
const ALL = `for (const [i, service] of process.argv.slice(2).entries()) {
  console.log('snippet ' + i)
  process.env.BASE_URL = service
  await import('./snippet' + i + '.js')
}
`
/** Snippets that buy. */
const BUYING = [3, 6, 8]

const answer = (body: object, status = 200) => answerWith(status, JSON.stringify(body))

/** Their types are a framework's, which needs the types of Node and fails with exactOptionalPropertyTypes by itself. */
const OF_FRAMEWORKS: ReadonlySet<string> = new Set(['./ai-sdk', './langchain'])

t.test('the tarball in an empty project', async (t) => {
  const project = openProject(t)
  await layOut(project, await pack('client/sdk'), OTHERS)

  await t.test('types pass a strict check, libraries included', async (t) => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'client/sdk/package.json'), 'utf8'))
    const paths = Object.keys(exports).filter((path) => path !== './package.json' && !OF_FRAMEWORKS.has(path))
    const imports = paths.map((path, i) => `import * as m${i} from '${join('countersign-sdk', path)}'`)
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
    const lines = [...OF_FRAMEWORKS].map((path, i) => `export * as m${i} from '${join('countersign-sdk', path)}'`)
    const misuse = `import { verifySourceTool } from 'countersign-sdk/ai-sdk'
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
    writeFileSync(join(project, 'out/all.mjs'), ALL)
    for (const major of MAJORS) {
      const node = await nodeOf(major)
      if (node === null) {
        t.pass(`Node ${major}`, { skip: 'it is not there, and the registry of packages cannot be reached' })
        continue
      }
      const services: string[] = []
      for (const i of PRINTED.keys()) {
        const script = [
          ...(BUYING.includes(i) ? [askForPayment(), askForPayment(), complete()] : []),
          ...(i === 4 ? [answer({ api_key: 'ctk_' }, 201), answer({ lease: { lease_id: 'lease-1' } }, 201)] : []),
          ...(i === 4 ? [answer({}), answer({}, 201), answer({ used: { receipts_today: 1 } })] : []),
        ]
        services.push((await play(t, ...script)).baseUrl)
      }
      const ran = await run(node, ['out/all.mjs', ...services], project)
      t.match(ran, { code: 0, stderr: '' }, `the snippets on Node ${major}`)
      const [before, ...parts] = ran.stdout.split(/^snippet \d+\n/m)
      t.equal(before, '')
      t.equal(parts.length, PRINTED.length)
      for (const [i, printed] of PRINTED.entries()) t.match(parts[i], printed, `snippet ${i} on Node ${major}`)
      t.notMatch(ran.stdout, /FAIL/)
    }
  })
})
