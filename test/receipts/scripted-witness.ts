// A witness after C2SP tlog-witness: it remembers the last head it signed, checks the log's signature and the consistency
// proof, and answers with a timestamped cosignature. A test can make it fail in several ways.
import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isContinued } from '../../client/chain/merkle.ts'

export interface ScriptedWitness extends AsyncDisposable {
  /** Verifier key and URL, as the configuration takes them. */
  entry: string
  vkey: string
  /** Bodies of the requests, and the statuses they were answered with. */
  received: { body: string; status: number }[]
  /** The head it signed last. */
  state: { size: number; root: string }
  /** Replaces its next answers, until it is set to null. */
  misbehave(how: ((answer: string) => { status: number; body: string }) | null): void
}

const sha256 = (...parts: (string | Uint8Array)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** @param logVkey verifier key of the one log that it witnesses */
export async function openScriptedWitness(name: string, logVkey: string): Promise<ScriptedWitness> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  const keyId = sha256(`${name}\n`, Buffer.of(4), raw).subarray(0, 4)
  const vkey = `${name}+${keyId.toString('hex')}+${Buffer.concat([Buffer.of(4), raw]).toString('base64')}`
  const received: ScriptedWitness['received'] = []
  const state = { size: 0, root: sha256().toString('hex') }
  let misbehaviour: ((answer: string) => { status: number; body: string }) | null = null

  function witness(body: string): { status: number; body: string } {
    const head = readRequest(body, logVkey)
    if (head.refused !== undefined) return { status: head.refused, body: head.reason }
    if (head.old !== state.size) return { status: 409, body: `${state.size}\n` }
    const from = { tree_size: state.size, root_hash: state.root }
    if (!isContinued(from, { tree_size: head.size, root_hash: head.root }, head.proof))
      return { status: 422, body: 'proof\n' }
    Object.assign(state, { size: head.size, root: head.root })
    const time = BigInt(Math.floor(Date.now() / 1000))
    const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${time}\n${head.text}`), privateKey)
    const timestamp = Buffer.alloc(8)
    timestamp.writeBigUInt64BE(time)
    return { status: 200, body: `\u2014 ${name} ${Buffer.concat([keyId, timestamp, signature]).toString('base64')}\n` }
  }

  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    const honest =
      request.url === '/w/add-checkpoint' && request.method === 'POST' ? witness(body) : { status: 404, body: '' }
    const answer = misbehaviour ? misbehaviour(honest.body) : honest
    received.push({ body, status: answer.status })
    const type = answer.status === 409 ? 'text/x.tlog.size' : 'text/plain; charset=utf-8'
    response.writeHead(answer.status, { 'content-type': type }).end(answer.body)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/w/`
  return {
    entry: `${vkey} ${url}`,
    vkey,
    received,
    state,
    misbehave: (how) => {
      misbehaviour = how
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

type Request =
  | { refused: number; reason: string }
  | { refused?: undefined; old: number; size: number; root: string; proof: string[]; text: string }

function readRequest(body: string, logVkey: string): Request {
  const match = body.match(
    /^old (0|[1-9]\d*)\n((?:[A-Za-z0-9+/]{43}=\n){0,63})\n((.+)\n(\d+)\n(.{44})\n)\n((?:\u2014 \S+ \S+\n)+)$/,
  )
  if (!match) return { refused: 400, reason: 'malformed\n' }
  const [, old, proof = '', text = '', origin, size, root = '', lines = ''] = match
  const [, name, id, key = ''] = logVkey.match(/^(.*?)\+(.*?)\+(.*)$/)!
  if (origin !== name) return { refused: 404, reason: 'unknown log\n' }
  const x = Buffer.from(key, 'base64').subarray(1).toString('base64url')
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const signed = lines.split('\n').some((line) => {
    const blob = Buffer.from(line.split(' ')[2] ?? '', 'base64')
    return blob.subarray(0, 4).toString('hex') === id && verify(null, Buffer.from(text), publicKey, blob.subarray(4))
  })
  if (!signed) return { refused: 403, reason: 'not signed\n' }
  const hashes = proof.split('\n').filter(Boolean)
  return {
    old: Number(old),
    size: Number(size),
    root: Buffer.from(root, 'base64').toString('hex'),
    proof: hashes.map((hash) => Buffer.from(hash, 'base64').toString('hex')),
    text,
  }
}
