// A service that publishes a handmade log, honestly or not: a test can replace the published log between two calls.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Attestation } from '../../client/verification.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { issueCheckpoint, VKEY } from './log-issuer.ts'

export interface Shown {
  chain: readonly Attestation[]
  /** Members of the head to replace by wrong values. */
  head?: Record<string, unknown>
  /** As `/v1/keys` lists them. */
  keys?: readonly unknown[]
  /** Status, in place of every answer to this path. */
  refuse?: Record<string, number>
  /** Another body, in place of the honest one. */
  answers?: Record<string, unknown>
}

export async function openLogServer(t: Test, shown: Shown) {
  const now = { shown }
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://log')
    const { status, body } = answer(now.shown, url)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    show: (next: Shown) => {
      now.shown = next
    },
  }
}

function answer(
  { chain, head, keys = [], refuse, answers }: Shown,
  { pathname, searchParams }: URL,
): { status: number; body: unknown } {
  const tree = referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))
  const hex = (hashes: Buffer[]) => hashes.map((hash) => hash.toString('hex'))
  const refused = Object.entries(refuse ?? {}).find(([path]) => pathname.startsWith(path))
  if (refused) return failure(refused[1])
  const replaced = Object.entries(answers ?? {}).find(([path]) => pathname.startsWith(path))
  if (replaced) return { status: 200, body: replaced[1] }
  if (pathname === '/v1/keys') return { status: 200, body: { keys } }
  if (pathname === '/v1/chain-head') return { status: 200, body: { ...headOf(chain, tree), ...head } }
  if (pathname === '/v1/consistency') {
    const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))]
    return to > chain.length || from > to
      ? failure(400)
      : { status: 200, body: { from, to, hashes: hex(tree.proof(from, to)) } }
  }
  if (pathname === '/v1/chain') {
    const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))]
    return { status: 200, body: { from, to, head_serial: chain.length, attestations: chain.slice(from - 1, to) } }
  }
  const serial = Number(pathname.match(/^\/v1\/receipt\/(\d+)$/)?.[1])
  const size = Number(searchParams.get('tree_size'))
  if (!(serial <= size && size <= chain.length)) return failure(404)
  const inclusion = { leaf_index: serial - 1, tree_size: size, hashes: hex(tree.path(serial - 1, size)) }
  return { status: 200, body: { attestation: chain[serial - 1], inclusion, checkpoint: issueCheckpoint(chain) } }
}

function headOf(chain: readonly Attestation[], tree: ReturnType<typeof referenceTree>) {
  const last = chain.at(-1)
  return {
    serial: chain.length,
    receipt_hash: last?.receipt_hash ?? '0'.repeat(64),
    tree_size: chain.length,
    root_hash: tree.root(chain.length).toString('hex'),
    checkpoint: last ? issueCheckpoint(chain) : '',
    vkey: VKEY,
  }
}

function failure(status: number) {
  const retryable = status >= 429
  const error = { code: retryable ? 'internal_error' : 'invalid_request', message: 'refused', retryable }
  return { status, body: { error } }
}
