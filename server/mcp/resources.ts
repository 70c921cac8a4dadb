// What a model may read before it calls anything: prices, keys, how to begin, what a receipt looks like.
import { ResourceNotFoundError } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { LIMITS, MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import type { Api } from '../context.ts'
import { introduction } from '../http/pages.ts'
import { attestation, receipt } from '../interface/attestation.ts'
import { execute } from '../operation.ts'
import { getKeys } from '../receipts/chain-operations.ts'
import { describeCapabilities } from '../verification/capabilities.ts'
import { type Exchange, type Feature, refuseCursor } from './server.ts'

export interface Document {
  uri: string
  name: string
  title: string
  description: string
  mimeType: string
  read(exchange: Exchange): Promise<string>
}

const JSON_TYPE = 'application/json'

export const documents: readonly Document[] = [
  {
    uri: 'service://pricing',
    name: 'pricing',
    title: 'Prices and limits',
    description: 'What one verification costs and on which networks, what each tier costs a month and has.',
    mimeType: JSON_TYPE,
    read: async ({ api }) => JSON.stringify(await pricing(api), null, 2),
  },
  {
    uri: 'service://keys',
    name: 'keys',
    title: 'Signing keys',
    description: 'Every public key that this service ever signed with. Pin them through a channel you trust.',
    mimeType: JSON_TYPE,
    read: async ({ api, credentials }) =>
      JSON.stringify(await execute(getKeys, () => ({}), { api, credentials }), null, 2),
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
    description: 'JSON Schema of an attestation, and of the receipt that a verification comes with.',
    mimeType: 'application/schema+json',
    read: async () => RECEIPT_SCHEMA,
  },
]

async function pricing(api: Api) {
  const { price, networks, payment_mode, payment_protocol, description, mcp_tool } = await describeCapabilities(api)
  const tiers = Object.entries(LIMITS).map(([tier, limits]) => {
    const usd = tier in MONTHLY_PRICE_USD ? MONTHLY_PRICE_USD[tier as keyof typeof MONTHLY_PRICE_USD] : 0
    return [tier, { usd_per_month: usd, limits }]
  })
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

export function resourcesFeature(offered: readonly Document[]): Feature {
  const list = { resources: offered.map(({ read: _, ...listed }) => listed) }
  const byUri = new Map(offered.map((document) => [document.uri, document]))
  return {
    capabilities: { resources: {} },
    install(server, exchange) {
      server.setRequestHandler('resources/list', ({ params }) => {
        refuseCursor(params?.cursor)
        return list
      })
      server.setRequestHandler('resources/templates/list', ({ params }) => {
        refuseCursor(params?.cursor)
        return { resourceTemplates: [] }
      })
      server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
        const document = byUri.get(uri)
        if (!document) throw new ResourceNotFoundError(uri)
        return { contents: [{ uri, mimeType: document.mimeType, text: await document.read(exchange) }] }
      })
    },
  }
}
