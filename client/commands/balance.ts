// The USDC of an address, read from a node of its network by JSON-RPC.
import { readBody, TooLongError } from '../bytes.ts'
import { networkFailure, originOf } from '../network-failure.ts'
import { integer, list, object, text } from '../shape.ts'
import { patienceWith } from './patience.ts'

/** In atomic units. Throws an Error that names the node. */
export async function evmBalance(owner: string, asset: string, node: string): Promise<bigint> {
  // The selector of balanceOf(address), and the address in 32 bytes.
  const data = `0x70a08231${owner.slice(2).toLowerCase().padStart(64, '0')}`
  const value = await ask(node, 'eth_call', [{ to: asset, data }, 'latest'])
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) throw stranger(node)
  return BigInt(value)
}

/** The same on Solana, where an owner may have several accounts of one token. */
export async function solanaBalance(owner: string, asset: string, node: string): Promise<bigint> {
  const found = await ask(node, 'getTokenAccountsByOwner', [owner, { mint: asset }, { encoding: 'jsonParsed' }])
  if (accountsShape(found, '')) throw stranger(node)
  const { value } = found as {
    value: { account: { data: { parsed: { info: { tokenAmount: { amount: string } } } } } }[]
  }
  return value.reduce((sum, { account }) => sum + BigInt(account.data.parsed.info.tokenAmount.amount), 0n)
}

const amountShape = object({ tokenAmount: object({ amount: text(/^\d{1,20}$/) }) })
const accountShape = object({ account: object({ data: object({ parsed: object({ info: amountShape }) }) }) })
const MOST_ACCOUNTS = 1000
/** Above as many accounts. */
const MAX_ANSWER_BYTES = 4_194_304
const accountsShape = object({ value: list(accountShape, MOST_ACCOUNTS) })
const refusalShape = object({ error: object({ code: integer(Number.MIN_SAFE_INTEGER), message: text() }) })

async function ask(node: string, method: string, params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const headers = { 'content-type': 'application/json' }
  const { plainFetch } = patienceWith(node)
  let answer: string
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await plainFetch(node, { method: 'POST', headers, body, signal })
    answer = new TextDecoder().decode(await readBody(response, MAX_ANSWER_BYTES))
  } catch (cause) {
    if (cause instanceof TooLongError) throw stranger(node)
    throw new Error(`The balance is not known: ${networkFailure(node, cause)}`, { cause })
  }
  const value = parsed(answer)
  if (!refusalShape(value, '')) {
    const { message } = (value as { error: { message: string } }).error
    throw new Error(`The balance is not known: ${originOf(node)} refuses: ${message}`)
  }
  if (typeof value !== 'object' || value === null || !('result' in value)) throw stranger(node)
  return value.result
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function stranger(node: string): Error {
  return new Error(
    `The balance is not known: ${originOf(node)} answers as no node of this network does. Is --rpc right?`,
  )
}

const TIMEOUT_MS = 60_000
