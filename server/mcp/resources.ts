// Resources that a model can read before it calls a tool: prices, keys, a quickstart, the schema of receipts.
import { ResourceNotFoundError } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { LIMITS, MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import type { Api } from '../context.ts'
import { attestation, receipt } from '../interface/attestation.ts'
import { introduction } from '../introduction.ts'
import { execute } from '../operation.ts'
import { getKeys } from '../receipts/chain-operations.ts'
import { describeCapabilities } from '../verification/offer/capabilities.ts'
import { type Feature, type McpRequest, refuseCursor } from './server.ts'

export interface Resource {
  uri: string
  name: string
  title: string
  description: string
  mimeType: string
  /** For hosts that support an extension. */
  _meta?: Record<string, unknown>
  read(request: McpRequest): Promise<string>
}

/** A resource that no list names: its address comes in an answer. */
export interface LinkedResource {
  mimeType: string
  /** Null for an address that opens nothing. */
  read(uri: string, request: McpRequest): Promise<string | null>
}

const JSON_TYPE = 'application/json'

export const resources: readonly Resource[] = [
  {
    uri: 'service://pricing',
    name: 'pricing',
    title: 'Prices and limits',
    description: 'The price and networks of one verification; the monthly price and limits of each tier.',
    mimeType: JSON_TYPE,
    read: async ({ api }) => JSON.stringify(await pricing(api), null, 2),
  },
  {
    uri: 'service://keys',
    name: 'keys',
    title: 'Signing keys',
    description: 'Every public key that this service ever signed with. Pin them through a channel you trust.',
    mimeType: JSON_TYPE,
    read: async (request) => JSON.stringify((await execute(getKeys, () => ({}), request)).body, null, 2),
  },
  {
    uri: 'service://docs/quickstart',
    name: 'quickstart',
    title: 'How to begin',
    description: 'How to buy a verification, step by step, over MCP and over HTTP, and where the reference is.',
    mimeType: 'text/markdown',
    read: async ({ api }) => introduction(api),
  },
  {
    uri: 'service://schemas/receipt',
    name: 'receipt-schema',
    title: 'Schema of receipts',
    description: 'JSON Schema of an attestation, and of the receipt in a verification result.',
    mimeType: 'application/schema+json',
    read: async () => RECEIPT_SCHEMA,
  },
]

async function pricing(api: Api) {
  const { price, networks, payment_mode, payment_protocol, description, mcp_tool } = await describeCapabilities(api)
  const prices = new Map(Object.entries(MONTHLY_PRICE_USD))
  const tiers = Object.entries(LIMITS).map(([tier, limits]) => [tier, { usd_per_month: prices.get(tier) ?? 0, limits }])
  return {
    verification: {
      ...(mcp_tool && { tool: mcp_tool }),
      description,
      per: 'completed verification',
      price,
      networks,
      payment_mode,
      payment_protocol,
    },
    control_toolkit: Object.fromEntries(tiers),
  }
}

const RECEIPT_SCHEMA = JSON.stringify(
  z.toJSONSchema(
    z.union([attestation.meta({ title: 'Attestation' }), receipt.meta({ title: 'Receipt of a verification' })]),
  ),
  null,
  2,
)

export function resourcesFeature(offered: readonly Resource[], linked: readonly LinkedResource[] = []): Feature {
  const list = { resources: offered.map(({ read: _, ...listed }) => listed) }
  const byUri = new Map(offered.map((resource) => [resource.uri, resource]))
  return {
    capabilities: { resources: {} },
    install(server, request) {
      server.setRequestHandler('resources/list', ({ params }) => {
        refuseCursor(params?.cursor)
        return list
      })
      server.setRequestHandler('resources/templates/list', ({ params }) => {
        refuseCursor(params?.cursor)
        return { resourceTemplates: [] }
      })
      server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
        const resource = byUri.get(uri)
        if (!resource) return { contents: [await readLinked(linked, uri, request)] }
        const { mimeType, _meta } = resource
        return { contents: [{ uri, mimeType, text: await resource.read(request), ...(_meta && { _meta }) }] }
      })
    },
  }
}

async function readLinked(linked: readonly LinkedResource[], uri: string, request: McpRequest) {
  for (const { mimeType, read } of linked) {
    const text = await read(uri, request)
    if (text !== null) return { uri, mimeType, text }
  }
  throw new ResourceNotFoundError(uri)
}
