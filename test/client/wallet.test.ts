// `countersign wallet`, and the keys that it reads: formats, modes, and that no message repeats a key.
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createKeyPairSignerFromBytes, getBase58Decoder } from '@solana/kit'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createWalletKey, openWallet, parseWallet, WalletError } from '../../client/wallet.ts'
import { openEvmChain } from '../payments/evm-chain.ts'
import { openCommand, SERVICE_TERMS } from './batch-desk.ts'
import { TERMS } from './counterpart.ts'

const HEX = '5b'.repeat(32)
const EVM = privateKeyToAccount(`0x${HEX}`).address
const SOLANA = await createWalletKey('solana')
const BYTES = Uint8Array.from(JSON.parse(SOLANA.text) as number[])
const BASE58 = getBase58Decoder().decode(BYTES)

t.test('the formats of keys', async (t) => {
  t.equal((await createKeyPairSignerFromBytes(BYTES)).address, SOLANA.address)
  const files: [string, string[]][] = [
    [HEX, [EVM]],
    [`0x${HEX.toUpperCase()}\n`, [EVM]],
    [BASE58, [SOLANA.address]],
    [SOLANA.text, [SOLANA.address]],
    [JSON.stringify([...BYTES], null, 1), [SOLANA.address]],
    [`0x${HEX}\n${BASE58}\n`, [EVM, SOLANA.address]],
    [`${BASE58}\r\n\r\n${HEX}\r\n`, [SOLANA.address, EVM]],
    [`0x${HEX}\n${SOLANA.text}`, [EVM, SOLANA.address]],
  ]
  for (const [contents, addresses] of files) {
    const wallet = await openWallet(await parseWallet(contents))
    t.same(
      wallet.addresses.map(({ address }) => address),
      addresses,
    )
  }
})

t.test('text that is no key is refused, and the error does not repeat it', async (t) => {
  const wrongHalf = Uint8Array.from(BYTES).fill(1, 32)
  for (const contents of [
    HEX.slice(1),
    `0x${HEX}5b`,
    '00'.repeat(32),
    'ff'.repeat(32),
    BASE58.slice(0, -8),
    `${BASE58.slice(0, -1)}0`,
    JSON.stringify([...wrongHalf]),
    JSON.stringify([...BYTES].slice(1)),
    '[256]',
    `${HEX}\n0x${HEX.replaceAll('5b', '6c')}`,
    'correct horse battery staple',
  ]) {
    const error = await parseWallet(contents)
      .then(openWallet)
      .then(
        () => null,
        (error: Error) => error,
      )
    t.match(error, { constructor: WalletError })
    for (const part of contents.match(/[0-9A-Za-z]{6,}/g) ?? []) t.notMatch(String(error?.message), part)
  }
})

t.test('what is signed', async (t) => {
  const wallet = await openWallet(await parseWallet(HEX))
  const { header, validBefore } = await wallet.sign(TERMS, SERVICE_TERMS)
  const { payload, accepted } = JSON.parse(Buffer.from(header, 'base64').toString())
  t.match(payload.authorization, { from: EVM, to: SERVICE_TERMS.payTo, value: '30000' })
  t.equal(validBefore, Number(payload.authorization.validBefore))
  t.match(accepted, SERVICE_TERMS)
  const permit2 = { ...SERVICE_TERMS, extra: { name: 'USDC', version: '2', assetTransferMethod: 'permit2' } }
  await t.rejects(
    wallet.sign({ ...TERMS, accepts: [permit2] }, permit2),
    WalletError,
    'no approval of another contract',
  )
})

t.test('the command', async (t) => {
  const { run, path, write, folder } = openCommand(t)

  await t.test('new makes a file of mode 600, and never writes over one', async (t) => {
    for (const args of [['evm.key'], ['solana.key', '--solana']]) {
      const made = await run(['wallet', 'new', ...args, '--json'])
      t.equal(made.code, 0, made.stderr)
      const file = path(String(args[0]))
      t.equal(statSync(file).mode & 0o777, 0o600)
      const contents = readFileSync(file, 'utf8')
      const { address } = JSON.parse(made.stdout)
      t.notMatch(made.stdout + made.stderr, contents.trim())
      t.equal((await run(['wallet', 'address', String(args[0])])).stdout, `${address}\n`)
      t.match(await run(['wallet', 'new', ...args]), {
        code: 2,
        stdout: '',
        stderr: /Cannot use \S+: it exists, and is not replaced\n/,
      })
      t.equal(readFileSync(file, 'utf8'), contents)
    }
  })

  await t.test('a key that others may read is refused', async (t) => {
    for (const mode of [0o644, 0o640, 0o602]) {
      writeFileSync(path(`open-${mode}.key`), HEX, { mode: 0o600 })
      chmodSync(path(`open-${mode}.key`), mode)
      const { code, stderr } = await run(['wallet', 'address', `open-${mode}.key`])
      t.equal(code, 2)
      t.match(stderr, /chmod 600/)
    }
  })

  await t.test('a key is never an argument, and no message repeats it', async (t) => {
    write('in.csv', 'source_url,claim\nhttps://example.org/,c\n')
    const keys = [HEX, `0x${HEX}`, HEX.slice(1), `"${HEX}"`, BASE58, SOLANA.text]
    for (const key of keys) {
      const asked = await run(['wallet', 'address', key])
      t.match(asked, { code: 2, stdout: '' })
      t.match(asked.stderr, /not the key/)
      t.notMatch(asked.stderr, key.slice(4, 24))
    }
  })

  await t.test('COUNTERSIGN_WALLET is a path or a key', async (t) => {
    const { serveRpc } = await openNode(t)
    const args = ['batch', 'in.csv', '--service', serveRpc, '--budget', '1', '--out', 'out', '--yes']
    const set = (COUNTERSIGN_WALLET: string) => run(args, { COUNTERSIGN_WALLET })
    // The test server sells nothing, so each attempt ends after the wallet was read.
    for (const good of [`${folder}/evm.key`, HEX, BASE58, `${HEX}\n${BASE58}`])
      t.notMatch((await set(good)).stderr, /wallet|key/i, 'it is read')
    for (const bad of [HEX.slice(1), `${HEX}5b`, `${HEX}\n${HEX}`]) {
      const { code, stderr } = await set(bad)
      t.equal(code, 2)
      t.notMatch(stderr, '5b5b5b')
    }
    t.match(await set(''), { code: 2, stderr: /Which wallet\?/ })
    t.match(await set('missing.key'), { code: 2, stderr: /missing\.key/ })
  })

  await t.test('balance', async (t) => {
    await using chain = await openEvmChain('eip155:84532')
    const key = generatePrivateKey()
    writeFileSync(path('paid.key'), `${key}\n${BASE58}\n`, { mode: 0o600 })
    await chain.mint(privateKeyToAccount(key).address, 1_230_001n)
    const ask = (...args: string[]) => run(['wallet', 'balance', 'paid.key', ...args])
    const evm = ['--network', 'eip155:84532', '--rpc', chain.url]
    t.equal((await ask(...evm)).stdout, '1.230001 USDC\n')
    t.match(JSON.parse((await ask(...evm, '--json')).stdout), { atomic: '1230001', network: 'eip155:84532' })
    const { serveRpc, asked } = await openNode(t)
    const devnet = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'
    t.equal((await ask('--network', devnet, '--rpc', serveRpc)).stdout, '0.50 USDC\n')
    t.match(asked, [{ method: 'getTokenAccountsByOwner', params: [SOLANA.address] }])
    const endless = createServer((_request, response) => {
      const send = () => {
        while (!response.closed && response.write(Buffer.alloc(65_536, ' ')));
      }
      response.on('drain', send)
      send()
    })
    await new Promise<void>((listening) => endless.listen(0, '127.0.0.1', listening))
    const rpc = `http://127.0.0.1:${(endless.address() as AddressInfo).port}`
    t.match(await ask('--network', devnet, '--rpc', rpc), { code: 1, stderr: `${rpc} answers as no node` })
    endless.closeAllConnections()
    endless.close()
    t.match(await ask('--network', 'eip155:1'), {
      code: 2,
      stderr: /--network eip155:1 is none that is known\. It is one of /,
    })
    t.match(await ask(), { code: 2, stderr: /--network is missing\. It is one of eip155:8453 \(Base\), / })
    t.match(await run(['wallet', 'balance', 'evm.key', '--network', devnet]), { code: 2, stderr: /no key for solana/ })
  })
})

/** A Solana node with two token accounts, which also answers what a service is asked first. */
async function openNode(t: { teardown: (end: () => unknown) => unknown }) {
  const asked: unknown[] = []
  const server = createServer(async (request, response) => {
    if (request.method === 'GET')
      return void response.end(JSON.stringify({ payment_mode: 'testnet', price: { amount_atomic: '30000' } }))
    const call = JSON.parse(await text(request)) as { id: unknown; method?: string }
    if (call.method === undefined) return void response.writeHead(404).end('{}')
    asked.push(call)
    const value = [200_000, 300_000].map((amount) => ({
      pubkey: SOLANA.address,
      account: { data: { parsed: { info: { tokenAmount: { amount: String(amount) } } } } },
    }))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: { context: { slot: 1 }, value } }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { serveRpc: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}
