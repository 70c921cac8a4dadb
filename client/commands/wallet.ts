// `countersign wallet`: makes a key file, prints its addresses, and reads its balance from the chain.
import { readHttpUrl, UsageError } from '../arguments.ts'
import { formatUsd, networkNames, usdcOf } from '../batch/money.ts'
import { NETWORKS, type NetworkName } from '../networks.ts'
import { createWalletKey, openWallet } from '../wallet.ts'
import { evmBalance, solanaBalance } from './balance.ts'
import { type CommandGroup, command } from './command.ts'
import { checkNew, writeNew } from './files.ts'
import { json, note, print } from './output.ts'
import { asUsage, readWalletKeys } from './wallet-file.ts'

const create = command({
  summary: 'make a new key in a file of mode 600',
  operands: ['FILE'],
  about:
    'The file holds the key unencrypted: a person who reads it can spend what is sent to its address. Keep little money on it,\n' +
    'and a copy of it elsewhere. An existing file is never overwritten.',
  examples: ['countersign wallet new wallet.key', 'countersign wallet new solana.key --solana'],
  options: { solana: { type: 'boolean', help: 'a key for Solana; by default one for EVM networks (Base)' } },
  async run([file = ''], { solana, json: asJson }) {
    const kind = solana ? 'solana' : 'evm'
    await checkNew(file)
    const { address, text } = await asUsage(() => createWalletKey(kind))
    await writeNew(file, `${text}\n`, 0o600)
    print(asJson ? json({ file, kind, address }) : `${address}\n`)
    if (!asJson)
      note(
        `The key is in ${file}. Send USDC on ${kind === 'evm' ? 'Base' : 'Solana'} to this address to pay with it.\n`,
      )
    return 0
  },
})

const address = command({
  summary: 'print the addresses of a wallet',
  operands: ['FILE'],
  examples: ['countersign wallet address wallet.key'],
  options: {},
  async run([file = ''], { json: asJson }) {
    const { addresses } = await asUsage(async () => openWallet(await readWalletKeys(file)))
    return print(asJson ? json({ addresses }) : addresses.map((one) => `${one.address}\n`).join(''))
  },
})

const balance = command({
  summary: 'print the USDC balance of a wallet',
  operands: ['FILE'],
  usage: '--network NETWORK',
  about: `NETWORK is one of ${networkNames.join(',\n')}.`,
  examples: [
    'countersign wallet balance wallet.key --network eip155:8453',
    'countersign wallet balance wallet.key --network eip155:84532 --rpc https://node.example',
  ],
  options: {
    network: { type: 'string', value: 'NETWORK', help: 'the network, as the service names it (CAIP-2)' },
    rpc: { type: 'string', value: 'URL', help: 'the node to use; by default a public one of the network' },
  },
  async run([file = ''], { network, rpc, json: asJson }) {
    const asset = network === undefined ? undefined : usdcOf(network)
    if (network === undefined || asset === undefined) {
      const wrong = network === undefined ? '--network is missing' : `--network ${network} is none that is known`
      const known = Object.entries(NETWORKS).map(([name, { title }]) => `${name} (${title})`)
      throw new UsageError(`${wrong}. It is one of ${known.join(', ')}.`)
    }
    const kind = network.startsWith('eip155:') ? 'evm' : 'solana'
    const { addresses } = await asUsage(async () => openWallet(await readWalletKeys(file)))
    const own = addresses.find((one) => one.kind === kind)
    if (!own) throw new UsageError(`The wallet has no key for ${network}.`)
    const node = rpc === undefined ? NETWORKS[network as NetworkName].node : readHttpUrl('--rpc', rpc)
    const atoms = await (kind === 'evm' ? evmBalance : solanaBalance)(own.address, asset, node)
    const amount = { network, address: own.address, asset, atomic: String(atoms), usdc: formatUsd(atoms) }
    return print(asJson ? json(amount) : `${amount.usdc} USDC\n`)
  },
})

export const wallet: CommandGroup = {
  summary: 'make a key that pays, and show its address and balance',
  commands: { new: create, address, balance },
  examples: ['countersign wallet new wallet.key', 'countersign wallet balance wallet.key --network eip155:8453'],
}
