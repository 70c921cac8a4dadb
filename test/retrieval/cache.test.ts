// Shared observations in both stores: one fetch for many claims, and entries that this service did not write are not used.
import { randomBytes, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { z } from 'zod'
import { openDatabase, sql } from '../../server/db/pool.ts'
import type { Observation } from '../../server/interface/observation.ts'
import { openLog } from '../../server/telemetry.ts'
import { idsOf, makeWorkerId } from '../../workers/context.ts'
import { buildObservationCache, type ObservationStore } from '../../workers/retrieval/cache.ts'
import { postgresObservations } from '../../workers/retrieval/observation-store-postgres.ts'
import { redisObservations } from '../../workers/retrieval/observation-store-redis.ts'
import { openTestDatabase } from '../database.ts'
import { redisUrl } from '../redis.ts'
import { harbourClaim, payingFetch, startSystem } from '../system.ts'

const never = new AbortController().signal
const log = openLog('silent')
const TURN = { seconds: 15, freshSeconds: 0 }

function observed(text: string, checkedAt = new Date()): Observation {
  const digest = 'a'.repeat(64)
  return {
    source: {
      final_url: 'https://kelby.test/',
      http_status: 200,
      content_type: 'text/html',
      content_sha256: digest,
      text_sha256: digest,
      normalized_text: text,
      offset_unit: 'unicode_codepoint',
      redirects: [],
      wire_bytes: 1,
      decoded_bytes: 1,
    },
    source_identity: { hostname: 'kelby.test', tls_verified: true, publisher_identity: 'unknown' },
    limits: { max_text_chars: 100_000 },
    risk_flags: [],
    checked_at: checkedAt.toISOString(),
    procedure: 'test-1',
  }
}

interface Opened extends AsyncDisposable {
  store: ObservationStore
  /** Changes the stored entry, as another program with access to the store could. */
  tamper(change: (value: Buffer) => Buffer): Promise<void>
}

async function openPostgresStore(): Promise<Opened> {
  const database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 4 })
  return {
    store: postgresObservations(db),
    async tamper(change) {
      const value =
        await db.oneFirst(sql.type(z.object({ value: z.instanceof(Buffer) }))`select value from observations`)
      await db.query(sql.type(z.object({}).strict())`update observations set value = ${sql.binary(change(value))}`)
    },
    async [Symbol.asyncDispose]() {
      await db.end()
      await database[Symbol.asyncDispose]()
    },
  }
}

async function openRedisStore(): Promise<Opened> {
  const redis = new Redis(redisUrl() ?? '', { db: 7 })
  await redis.flushdb()
  return {
    store: redisObservations(redis),
    async tamper(change) {
      const [key = ''] = await redis.keys('countersign:observation:*')
      await redis.set(key, change((await redis.getBuffer(key)) ?? Buffer.alloc(0)))
    },
    async [Symbol.asyncDispose]() {
      await redis.flushdb()
      redis.disconnect()
    },
  }
}

const stores = { postgres: openPostgresStore, ...(redisUrl() ? { redis: openRedisStore } : {}) }

for (const [name, open] of Object.entries(stores))
  t.test(`${name}: the turns of a worker that died end, and those of others stay`, async (t) => {
    await using opened = await open()
    const [dead, living] = [makeWorkerId(), makeWorkerId()]
    const [one, other] = ['1'.repeat(64), '2'.repeat(64)]
    t.ok((await opened.store.begin(one, dead.make(), TURN)).isTurn)
    t.ok((await opened.store.begin(other, living.make(), TURN)).isTurn)
    t.notOk((await opened.store.begin(one, living.make(), TURN)).isTurn, 'taken')
    await opened.store.release(idsOf(dead.prefix))
    t.ok((await opened.store.begin(one, living.make(), TURN)).isTurn, 'free')
    t.notOk((await opened.store.begin(other, dead.make(), TURN)).isTurn, 'of a living worker')
  })

for (const [name, open] of Object.entries(stores))
  t.test(`${name}: of many that begin at once, one a page has the turn`, async (t) => {
    await using opened = await open()
    const keys = ['3', '4', '5'].map((digit) => digit.repeat(64))
    const asked = keys.flatMap((key) => Array.from({ length: 20 }, () => ({ key, fetcher: randomUUID() })))
    const begun = await Promise.all(asked.map(({ key, fetcher }) => opened.store.begin(key, fetcher, TURN)))
    const turns = asked.filter((_, n) => begun[n]?.isTurn)
    t.same(turns.map(({ key }) => key).sort(), keys)
    t.ok(begun.every(({ value }) => value === null))
    const [{ key = '', fetcher = '' } = {}] = turns
    await opened.store.put(key, Buffer.from('entry'), fetcher, 300)
    const fresh = { seconds: 15, freshSeconds: 60 }
    const found = await Promise.all(keys.map((one) => opened.store.begin(one, randomUUID(), fresh)))
    const text = Buffer.from('entry')
    t.same(found, [{ isTurn: false, value: text }, ...Array(2).fill({ isTurn: false, value: null })])
    t.same(await opened.store.begin(key, randomUUID(), TURN), { isTurn: true, value: text }, 'the turn was ended')
  })

t.test(
  'postgres: entries that are put at once are stored in their order, but for those whose turn another has',
  async (t) => {
    await using opened = await openPostgresStore()
    const { store } = opened
    const keys = Array.from({ length: 40 }, (_, n) => n.toString(16).padStart(64, '0'))
    const turns = await Promise.all(
      keys.map(async (key) => {
        const fetcher = randomUUID()
        t.ok((await store.begin(key, fetcher, TURN)).isTurn)
        return { key, fetcher }
      }),
    )
    // Bytes that are no text, and an empty value between others.
    const entryOf = (n: number) =>
      n === 7 ? Buffer.alloc(0) : Buffer.from(Array.from({ length: 50 + n }, (_, i) => (i * 7 + n) % 256))
    const [stranger, late] = [randomUUID(), Buffer.from('late')]
    await Promise.all([
      ...turns.map(({ key, fetcher }, n) =>
        store.put(key, n === 3 ? late : entryOf(n), n === 3 ? stranger : fetcher, 300),
      ),
      store.put(keys[5] ?? '', late, stranger, 300),
      store.put('f'.repeat(64), late, stranger, 300),
    ])
    const FRESH = { seconds: 15, freshSeconds: 60 }
    const found = await Promise.all(keys.map((key) => store.begin(key, randomUUID(), FRESH)))
    for (const [n, { value }] of found.entries())
      t.same(value, n === 3 ? null : n === 5 ? late : entryOf(n), `entry ${n}`)
    t.notOk(found[3]?.isTurn, 'its turn is still that of its fetcher')
    t.same((await store.begin('f'.repeat(64), randomUUID(), FRESH)).value, late, 'an entry that nobody began')
  },
)

for (const [name, open] of Object.entries(stores)) {
  t.test(name, async (t) => {
    await using opened = await open()
    const secret = randomBytes(32)
    const cache = () => buildObservationCache(opened.store, { secret, log })
    const url = `https://kelby.test/${randomUUID()}`

    const fetches: string[] = []
    const fetch = (text: string) => async () => {
      fetches.push(text)
      return observed(text)
    }
    const both = await Promise.all([
      cache().observe(url, 60, fetch('a'), never),
      cache().observe(url, 60, fetch('b'), never),
    ])
    t.equal(fetches.length, 1, 'two processes at once fetch once')
    t.same(both.map((b) => b.hit).sort(), [false, true])
    t.equal(both[0].observation.source.normalized_text, both[1].observation.source.normalized_text)
    t.equal((await cache().observe(`${url}#part`, 60, fetch('c'), never)).hit, true, 'a fragment is the same page')
    t.equal((await cache().observe(url, 0, fetch('d'), never)).hit, false, '0 always fetches')
    const later = buildObservationCache(opened.store, { secret, log, now: () => Date.now() + 61_000 })
    t.equal((await later.observe(url, 60, fetch('e'), never)).observation.source.normalized_text, 'e', 'too old')

    await opened.tamper((value) => Buffer.from(value.toString('latin1').replace('"e"', '"x"'), 'latin1'))
    t.equal((await cache().observe(url, 300, fetch('f'), never)).observation.source.normalized_text, 'f', 'poisoned')
    await opened.tamper((value) => value.subarray(0, -1))
    t.equal((await cache().observe(url, 300, fetch('g'), never)).observation.source.normalized_text, 'g', 'truncated')
    const stranger = buildObservationCache(opened.store, { secret: randomBytes(32), log })
    t.equal((await stranger.observe(url, 300, fetch('h'), never)).hit, false, 'another seal')

    const failing = cache().observe('https://kelby.test/fails', 60, () => Promise.reject(new Error('no page')), never)
    await t.rejects(failing, /no page/)
    t.equal(
      (await cache().observe('https://kelby.test/fails', 60, fetch('i'), never)).hit,
      false,
      'the turn was given up',
    )

    const gate = Promise.withResolvers<void>()
    const missed = Promise.withResolvers<void>()
    const late = buildObservationCache(
      {
        ...opened.store,
        async begin(...turn) {
          missed.resolve()
          await gate.promise
          return opened.store.begin(...turn)
        },
      },
      { secret, log },
    )
    const shared = `https://kelby.test/${randomUUID()}`
    const lateLook = late.observe(shared, 60, fetch('late'), never)
    await missed.promise
    await cache().observe(shared, 60, fetch('early'), never)
    gate.resolve()
    t.match(
      await lateLook,
      { hit: true, observation: { source: { normalized_text: 'early' } } },
      'a turn, once taken, looks into the cache again',
    )
  })
}

t.test('a store that fails costs the sharing and nothing else', async (t) => {
  const broken = () => Promise.reject(new Error('away'))
  const cache = buildObservationCache(
    { put: broken, begin: broken, end: broken, release: broken },
    { secret: randomBytes(32), log },
  )
  t.match(await cache.observe('https://kelby.test/', 60, async () => observed('a'), never), { hit: false })
})

t.test('the cache fields of results', async (t) => {
  await using system = await startSystem()
  const buy = async (maxAge?: number) => {
    const body = {
      ...harbourClaim(system.site),
      ...(maxAge === undefined ? {} : { options: { max_age_seconds: maxAge } }),
    }
    const answer = await system.ask({ key: randomUUID(), body, headers: { prefer: 'wait=25' }, fetch: payingFetch() })
    t.equal(answer.status, 200)
    return (await answer.json()) as { checked_at: string; served_at: string; cache: Record<string, unknown> }
  }
  const first = await buy()
  t.same(first.cache, { hit: false, age_seconds: 0, original_checked_at: first.checked_at })
  const second = await buy()
  t.same(second.cache, {
    hit: true,
    age_seconds: Math.floor((Date.parse(second.served_at) - Date.parse(first.checked_at)) / 1000),
    original_checked_at: first.checked_at,
  })
  t.equal(second.checked_at, first.checked_at)
  t.equal((await buy(0)).cache.hit, false)
  t.equal(system.site.requests.length, 2)
})
