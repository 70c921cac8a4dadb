// The signer of a payment is determined once, and used only for exactly the same payment.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { recoverTypedDataAddress, toHex } from 'viem/utils'
import { EVM_NETWORKS } from '../../server/interface/networks.ts'
import { chainIdOf, openSignatureChecks } from '../../server/payments/chains/signature-checks.ts'
import { recoverSigner } from '../../server/payments/chains/signature-thread.ts'
import { type SignedTransfer, TRANSFER_TYPES, typedDataOf } from '../../server/payments/chains/signed-transfer.ts'
import type { Threads } from '../../server/threads/pool.ts'
import { sharedThreads } from '../shared-threads.ts'

const NETWORK = 'eip155:84532'

const authorizationOf = (from: Hex) =>
  ({
    from,
    to: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
    value: '30000',
    validAfter: '0',
    validBefore: '1900000000',
    nonce: `0x${'ab'.repeat(32)}`,
  }) as const

t.test('a payment that comes again is not checked again, and another one is', async (t) => {
  const payer = privateKeyToAccount(generatePrivateKey())
  const authorization = authorizationOf(payer.address)
  const { asset, name, version } = EVM_NETWORKS[NETWORK].usdc
  const signature = await payer.signTypedData({
    domain: { name, version, chainId: chainIdOf(NETWORK), verifyingContract: asset },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: { ...authorization, value: 30_000n, validAfter: 0n, validBefore: 1_900_000_000n },
  })
  const threads = sharedThreads()
  let runs = 0
  const counted: Threads = {
    ...threads,
    run: (...given: Parameters<Threads['run']>) => {
      runs++
      return threads.run(...given) as Promise<never>
    },
  }
  await using checks = openSignatureChecks(counted)
  const check = (changes: object = {}, other: `0x${string}` = signature) =>
    checks.isSignedByPayer(NETWORK, { signature: other, authorization: { ...authorization, ...changes } })
  for (let time = 0; time < 3; time++) t.equal(await check(), true)
  t.equal(runs, 1)
  const stranger = privateKeyToAccount(generatePrivateKey()).address
  const changes = [
    { from: stranger },
    { to: stranger },
    { value: '30001' },
    { validAfter: '1' },
    { validBefore: '1900000001' },
    { nonce: `0x${'cd'.repeat(32)}` },
  ]
  for (const change of changes) t.equal(await check(change), false, JSON.stringify(change))
  t.equal(runs, 1 + changes.length)
  for (const change of changes) t.equal(await check(change), false, JSON.stringify(change))
  t.equal(runs, 1 + changes.length, 'that a signature is wrong is kept, too')
  const last = signature.endsWith('1b') ? '1c' : '1b'
  t.equal(await check({}, `${signature.slice(0, -2)}${last}` as `0x${string}`), false, 'another recovery id')
  t.equal(runs, 2 + changes.length)
})

t.test('the signer is the one that viem finds, and none where it finds none', async (t) => {
  const byViem = (transfer: SignedTransfer) =>
    recoverTypedDataAddress({ ...typedDataOf(transfer), signature: transfer.signature }).then(
      (address) => address.toLowerCase(),
      () => null,
    )
  const payer = privateKeyToAccount(generatePrivateKey())
  const transfer: SignedTransfer = {
    chainId: chainIdOf(NETWORK),
    ...EVM_NETWORKS[NETWORK].usdc,
    signature: '0x',
    authorization: authorizationOf(payer.address),
  }
  const own = await payer.signTypedData(typedDataOf(transfer))
  t.equal(recoverSigner({ ...transfer, signature: own }), payer.address.toLowerCase())
  const [order, zero] = ['fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', '0'.repeat(64)]
  const [r, s] = [own.slice(2, 66), own.slice(66, 130)]
  const made = [
    ...Array.from({ length: 60 }, (_, n) => toHex(randomBytes(64)) + (n % 2 ? '1b' : '1c')),
    ...[zero, order, 'f'.repeat(64)].flatMap((odd) => [`0x${odd}${s}1b`, `0x${r}${odd}1c`]),
    own.slice(0, -2),
    `${own}00`,
    '0x',
  ] as Hex[]
  const ours = made.map((signature) => recoverSigner({ ...transfer, signature }))
  t.same(ours, await Promise.all(made.map((signature) => byViem({ ...transfer, signature }))))
  t.ok(ours.slice(0, 60).some((signer) => signer === null) && ours.slice(0, 60).some((signer) => signer !== null))
})
