// The receipt log in the form of C2SP tlog-tiles, for tools of transparency logs: a signed checkpoint and tiles of bytes.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { findEntries, findTile } from '../receipts/archive.ts'
import { findHead } from '../receipts/head.ts'
import { findNewestTimestamp, findTimestamps, type StoredTimestamp } from '../receipts/timestamps.ts'
import { TILE_WIDTH } from '../receipts/tree.ts'
import { findServed } from '../receipts/witnessing.ts'

/** The content of a tile never changes. */
const FOR_EVER = 'public, max-age=31536000, immutable'

export function mountTlog(app: FastifyInstance, api: Api) {
  app.get('/checkpoint', { config: { operation: 'checkpoint' } }, async (request, reply) => {
    await api.limits.spend(request.ip)
    const checkpoint = await findServed(api)
    if (checkpoint === '') throw new AppError('not_found', 'The log has no checkpoint yet, because it has no entry.')
    return reply.type('text/plain; charset=utf-8').header('cache-control', 'no-store').send(checkpoint)
  })
  app.get('/checkpoint/timestamp', { config: { operation: 'checkpoint_timestamp' } }, async (request, reply) => {
    await api.limits.spend(request.ip)
    const newest = await findNewestTimestamp(api.db)
    if (!newest) throw new AppError('not_found', 'No time-stamp authority has signed a checkpoint of this log.')
    return reply
      .type('application/timestamp-reply')
      .header('cache-control', 'no-store')
      .header('x-checkpoint', Buffer.from(newest.note).toString('base64'))
      .send(newest.reply)
  })
  app.get<TimestampsRoute>(
    '/checkpoint/timestamps',
    { config: { operation: 'checkpoint_timestamps' } },
    async (request, reply) => {
      await api.limits.spend(request.ip)
      const { from = '1' } = request.query
      if (!SIZE.test(from)) throw new AppError('invalid_request', 'from must be the size of a tree, 1 or more.')
      const found = await findTimestamps(api.db, Number(from))
      return reply.type('application/jsonl').header('cache-control', 'no-store').send(found.map(lineOf).join(''))
    },
  )
  app.get<TileRoute>('/tile/*', { config: { operation: 'tile' } }, (request, reply) => answerTile(request, reply, api))
}

/** At most 15 digits, which are a safe integer. */
const SIZE = /^[1-9][0-9]{0,14}$/
type TimestampsRoute = { Querystring: { from?: string } }

/** A line of the file that stands beside an export. */
function lineOf({ note, reply }: StoredTimestamp): string {
  return `${JSON.stringify({ note, reply_base64: reply.toString('base64') })}\n`
}

type TileRoute = { Params: { '*': string } }

async function answerTile(request: FastifyRequest<TileRoute>, reply: FastifyReply, api: Api) {
  await api.limits.spend(request.ip)
  const tile = parseTile(request.params['*'])
  const bytes = tile && (await loadTile(api, tile))
  if (!bytes) throw new AppError('not_found', 'The log has no such tile.')
  return reply.type('application/octet-stream').header('cache-control', FOR_EVER).send(bytes)
}

function loadTile({ db }: Api, { level, index, width }: Tile): Promise<Buffer | null> {
  return transact(
    db,
    async (tx) => {
      const head = await findHead(tx)
      return level === 'entries' ? findEntries(tx, head, { index, width }) : findTile(tx, head, { level, index, width })
    },
    { readOnly: true },
  )
}

export interface Tile {
  level: number | 'entries'
  index: number
  /** 256 for a full tile. */
  width: number
}

/** `<L>/<N>[.p/<W>]` with N in groups of three digits, each but the last with the prefix x; null for any other spelling. */
export function parseTile(path: string): Tile | null {
  const [, level = '', groups = '', last = '', width] =
    path.match(/^(entries|[0-9]|[1-5][0-9]|6[0-3])\/((?:x[0-9]{3}\/)*)([0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/) ?? []
  // With a leading group of zeros, one tile would have two paths.
  if (last === '' || groups.startsWith('x000/') || Number(width) >= TILE_WIDTH) return null
  const index = Number(groups.replace(/[x/]/g, '') + last)
  if (!Number.isSafeInteger(index)) return null
  return { level: level === 'entries' ? level : Number(level), index, width: width ? Number(width) : TILE_WIDTH }
}
