// Signatures of batches: the same on the thread and on the event loop, and every batch ends.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import t from 'tap'
import { openSigning, type Signing, signHere } from '../../server/receipts/signatures.ts'

const { privateKey } = generateKeyPairSync('ed25519')
const texts = Array.from({ length: 40 }, (_, n) => `text ${n} caf\u00e9 \u{1F600}`)

/** Signs until the thread is ready and has signed a batch. */
async function untilThread(signing: Signing): Promise<string[]> {
  for (;;) {
    const answer = signing.sign(texts, privateKey)
    if (answer instanceof Promise) return answer
    await new Promise((tick) => setImmediate(tick))
  }
}

t.test('the thread makes the same signatures as the event loop', async (t) => {
  await using signing = openSigning()
  const here = await signHere(texts, privateKey)
  t.same(signing.sign(texts, privateKey), here, 'the first batch does not wait for the thread to start')
  t.same(await untilThread(signing), here)
  const publicKey = createPublicKey(privateKey.export({ format: 'pem', type: 'pkcs8' }))
  for (const [n, signature] of here.entries())
    if (!verify(null, Buffer.from(texts[n]!), publicKey, Buffer.from(signature, 'hex')))
      t.fail(`signature of ${texts[n]}`)
  const many = await Promise.all([signing.sign(texts, privateKey), signing.sign(texts.toReversed(), privateKey)])
  t.same(many, [here, here.toReversed()], 'each batch gets its own signatures')
  t.ok(Array.isArray(signing.sign(texts.slice(0, 2), privateKey)), 'a few are not worth a thread')
})

t.test('a batch that fails on the thread fails alone, and later batches are signed', async (t) => {
  await using signing = openSigning()
  await untilThread(signing)
  const wrong = createPublicKey(privateKey.export({ format: 'pem', type: 'pkcs8' })) as KeyObject
  const lost = await Promise.allSettled([signing.sign(texts, wrong), signing.sign(texts, privateKey)])
  t.same(
    lost.map(({ status }) => status),
    ['rejected', 'fulfilled'],
  )
  const key = createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' }))
  t.same(await signing.sign(texts, key), await signHere(texts, key))
  t.same(await untilThread(signing), await signHere(texts, key))
})
