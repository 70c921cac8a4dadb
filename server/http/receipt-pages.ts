// The pages of results, receipts and accounts: /results/{request_id}, /receipts, /receipts/{serial}, /chain, /account.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { singleFlight } from '../db/single-flight.ts'
import { AppError } from '../errors.ts'
import { accountPage } from '../pages/account-page.ts'
import { chainPage, type ShownChain } from '../pages/chain-page.ts'
import { openSite } from '../pages/layout.ts'
import { receiptPage, receiptSearchPage, type Search } from '../pages/receipt-page.ts'
import { resultPage } from '../pages/result-page.ts'
import { readNote } from '../receipts/checkpoint.ts'
import { findByHash, measureGrowth } from '../receipts/growth.ts'
import { findHead } from '../receipts/head.ts'
import { describeReceipt, lengthInWords, serial } from '../receipts/operations.ts'
import { findNewestTimestamp } from '../receipts/timestamps.ts'
import { findPublished } from '../receipts/witnessing.ts'
import { sendPage } from './page-answers.ts'

/** Days of the plots on /chain, today included. */
const DAYS = 30
const LATEST = 20
/** Milliseconds for which the figures of /chain are reused. */
const KEEP_MS = 5000

export function mountReceiptPages(app: FastifyInstance, api: Api) {
  const page = (operation: string) => ({
    config: { operation },
    onRequest: (request: FastifyRequest) => api.limits.spend(request.ip),
  })
  const chain = singleFlight(() => readChain(api), KEEP_MS)

  app.get<{ Params: { id: string } }>('/results/:id', page('result_page'), async ({ params }, reply) => {
    const id = z.uuid().safeParse(params.id)
    if (!id.success) throw new AppError('not_found', 'There is no such result: the address is incomplete or mistyped.')
    return sendPage(reply, resultPage(await openSite(api), id.data, api.config.resultRetentionSeconds), {
      secret: true,
    })
  })
  app.get<{ Querystring: { q?: unknown } }>('/receipts', page('receipt_search'), async ({ query }, reply) => {
    const search = await findReceipts(api, typeof query.q === 'string' ? query.q.trim() : '')
    const [only] = search.found ?? []
    if (search.found?.length === 1) return reply.code(303).header('location', `/receipts/${only}`).send()
    return sendPage(reply, receiptSearchPage(await openSite(api), search), { forms: true })
  })
  app.get<{ Params: { serial: string } }>('/receipts/:serial', page('receipt_page'), async ({ params }, reply) => {
    const wanted = serial.safeParse(params.serial)
    if (!wanted.success) throw new AppError('not_found', 'There is no such receipt: a serial is a number.')
    const { reader } = api
    const shown = await describeReceipt(reader, wanted.data, await reader.head())
    const [previous, next] = await Promise.all([
      reader.attestation(wanted.data - 1),
      reader.attestation(wanted.data + 1),
    ])
    return sendPage(reply, receiptPage(await openSite(api), { ...shown, previous, next }))
  })
  app.get('/account', page('account_page'), async (_request, reply) =>
    sendPage(reply, accountPage(await openSite(api)), { secret: true }),
  )
  app.get('/chain', page('chain_page'), async (_request, reply) =>
    sendPage(reply, chainPage(await openSite(api), await chain()), { forms: true }),
  )
}

async function findReceipts(api: Api, given: string): Promise<Search> {
  if (given === '') return { given, found: null }
  const number = serial.safeParse(given.replace(/^#/, ''))
  if (number.success) {
    const head = await api.reader.head()
    if (number.data <= head.serial) return { given, found: [number.data] }
    return { given, found: null, problem: `There is no receipt ${number.data}: ${lengthInWords(head.serial)}.` }
  }
  const hex = given.toLowerCase()
  if (/^[0-9a-f]{64}$/.test(hex)) return { given, found: await findByHash(api.db, hex) }
  return { given, found: null, problem: 'That is neither a serial nor 64 characters from 0 to 9 and a to f.' }
}

async function readChain(api: Api): Promise<ShownChain> {
  const { reader, db, config } = api
  const head = await findHead(db)
  const { serial: last } = head
  const serials = Array.from({ length: Math.min(LATEST, last) }, (_, n) => last - n)
  const [growth, published, stamp, ...latest] = await Promise.all([
    measureGrowth(db, DAYS, api.now()),
    findPublished(api),
    findNewestTimestamp(db),
    ...serials.map((serial) => reader.attestation(serial)),
  ])
  const checkpoint = published ?? head.checkpoint
  const signatures = readNote(checkpoint)?.signatures ?? []
  return {
    serial: last,
    receiptHash: head.receipt_hash,
    checkpoint,
    growth,
    latest: latest.filter((one) => one !== null),
    stamp,
    witnesses: config.witnesses.map(({ name, keyId }) => ({
      name,
      signed: signatures.some((line) => line.name === name && line.keyId.equals(keyId)),
    })),
  }
}
