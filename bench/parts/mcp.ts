// tools/list and a tool that reads, over HTTP and in both eras of the protocol, beside the SDKs' own way to serve the same
// tools: an McpServer per request.
import { openAccounts } from '../accounts.ts'
import { openChild } from '../child.ts'
import { openGenerator } from '../generator.ts'
import { type Lab, openClient } from '../lab.ts'
import type { Load } from '../load.ts'
import { compete } from '../rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from '../table.ts'
import { openWatch, type Watch } from '../watch.ts'

const CALLERS = 16
const AIM_LIST = 10
const AIM_CALL = 1
const VERSION = '2026-07-28'

export async function benchMcp(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const env = { DATABASE_URL: url, RATE_LIMIT_PER_MINUTE: '0' }
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env }))
  const peer = opened.use(await openChild(lab, 'bench/peers/mcp-peer.ts', { event: 'peer_ready', env }))
  const generator = opened.use(await openGenerator(lab))
  const accounts = await openAccounts(await openClient(url, opened), 'bench')
  const milliseconds = lab.quick ? 1000 : 4000

  const questions: Question[] = [
    { what: 'tools/list', method: 'tools/list', params: [{}], aim: AIM_LIST },
    {
      what: 'service_usage_get',
      method: 'tools/call',
      params: accounts.map(({ key }) => ({ name: 'service_usage_get', arguments: { service_key: key } })),
      aim: AIM_CALL,
    },
  ]
  for (const question of questions)
    for (const { era, peerPath, peerName } of ERAS) {
      const watches = {
        ours: opened.use(await openWatch(url, { API: api.pid, load: generator.pid })),
        peer: opened.use(await openWatch(url, { API: peer.pid, load: generator.pid })),
      }
      const asked = {
        ours: { ...load(question, era), origin: String(api.ready.address), path: '/mcp' },
        peer: { ...load(question, era), origin: String(peer.ready.address), path: peerPath },
      }
      const answered = { ours: 0, peer: 0 }
      const timed = async (name: keyof typeof asked) => {
        const rate = await watches[name].during(() => generator.run({ ...asked[name], milliseconds }))
        answered[name] += (rate * milliseconds) / 1000
        return rate
      }
      printHeading('mcp', `${question.what}, ${era} era, ${CALLERS} connections`)
      for (const name of ['ours', 'peer'] as const) await generator.run({ ...asked[name], milliseconds: WARM_UP_MS })
      printStandings(
        await compete(lab.rounds, [
          { what: 'POST /mcp, one API process', run: () => timed('ours') },
          { what: peerName, run: () => timed('peer'), aim: question.aim },
        ]),
      )
      const cpu = (name: keyof typeof answered, watch: Watch) => figure((1000 * watch.cpuMs('API')) / answered[name])
      printRows([['CPU of one request', `${cpu('ours', watches.ours)} us`, `peer ${cpu('peer', watches.peer)} us`]])
      printNote(watches.ours.heldBack())
    }
}

const WARM_UP_MS = 1500

interface Question {
  what: string
  method: string
  /** Asked with in turn. */
  params: Record<string, unknown>[]
  aim: number
}

const ERAS = [
  { era: 'legacy', peerPath: '/first', peerName: 'McpServer and Node transport of SDK 1' },
  { era: 'modern', peerPath: '/second', peerName: 'McpServer and createMcpHandler of SDK 2' },
] as const
type Era = (typeof ERAS)[number]['era']

function load({ method, params }: Question, era: Era): Omit<Load, 'origin' | 'path'> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const modern = era === 'modern'
  const request = (given: Record<string, unknown>) => ({
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(modern
        ? {
            'mcp-protocol-version': VERSION,
            'mcp-method': method,
            ...(typeof given.name === 'string' && { 'mcp-name': given.name }),
          }
        : { 'mcp-protocol-version': '2025-11-25' }),
    },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method },
      params: { ...given, ...(modern && { _meta: envelope }) },
    }),
  })
  return { method: 'POST', requests: params.map(request), connections: CALLERS, status: 200 }
}
