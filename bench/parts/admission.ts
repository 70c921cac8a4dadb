// Durable admissions per second: a paid request is stored with its claim and its job before its caller is answered.
// Compares groups, as the service writes them, with one transaction per request.
import { createHash, randomBytes } from 'node:crypto'
import type pg from 'pg'
import { PUBLIC_LIMITS } from '../../server/accounts/tiers.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { openAdmissions } from '../../server/verification/admission/admission.ts'
import { type Lab, openClient } from '../lab.ts'
import { bodyFor, bodyHashOf, buildAdmission } from '../orders.ts'
import { type Admitter, pgAdmitter, slonikAdmitter, statementAdmitter } from '../peers/one-by-one.ts'
import { closedLoop, compete } from '../rounds.ts'
import { printHeading, printNote, printStandings } from '../table.ts'
import { openWatch, type Watch } from '../watch.ts'

const CALLERS = 64
/** As openCore has it. */
const CONNECTIONS = 10
const AIM = 5
/** More rows quoted beforehand than any trial can accept in its time. */
const QUOTED_PER_SECOND = { grouped: 30_000, single: 6000 }

export async function benchAdmission(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const admin = await openClient(url, opened)
  const db = await openDatabase(url, { maxConnections: CONNECTIONS })
  opened.defer(() => db.end())
  const admissions = opened.use(openAdmissions(db, PUBLIC_LIMITS.first_in_flight_per_payer))
  const grouped: Admitter['admit'] = async (admission) => {
    const outcome = await admissions.add(admission)
    if (outcome.kind !== 'row' || !outcome.accepted) throw new Error('an admission of the bench was not accepted')
  }
  const slonik = opened.use(slonikAdmitter(db))
  const plain = opened.use(pgAdmitter(url, CONNECTIONS))
  const statement = opened.use(statementAdmitter(url, CONNECTIONS))
  const watch = opened.use(await openWatch(url, { 'callers and batcher': process.pid }))
  const trial = (what: string, admit: Admitter['admit'], options: TrialOptions, aim?: number) => ({
    what,
    aim,
    run: () => runTrial(lab, admin, admit, options),
  })

  printHeading('admission', `durable, payment verified before, ${CALLERS} callers, ${CONNECTIONS} connections`)
  for (const known of [false, true]) {
    const single = { known, quotedPerSecond: QUOTED_PER_SECOND.single }
    const standings = await compete(lab.rounds, [
      trial(known ? 'rows quoted before, in groups' : 'fresh rows, in groups', grouped, {
        known,
        quotedPerSecond: QUOTED_PER_SECOND.grouped,
        watch,
      }),
      trial('one transaction each, slonik', slonik.admit, single, AIM),
      trial('one transaction each, pg', plain.admit, single, AIM),
      // One statement cannot lock and write a row that already exists.
      ...(known ? [] : [trial('one statement each, pg', statement.admit, single)]),
    ])
    printStandings(standings)
  }
  printNote(watch.heldBack())
}

interface TrialOptions {
  known: boolean
  quotedPerSecond: number
  watch?: Watch
}

async function runTrial(lab: Lab, admin: pg.Client, admit: Admitter['admit'], options: TrialOptions): Promise<number> {
  const milliseconds = lab.quick ? 500 : 900
  const secret = randomBytes(32)
  await admin.query('truncate verification_requests, payment_claims, graphile_worker._private_jobs cascade')
  const keys = options.known
    ? await quote(admin, Math.ceil((options.quotedPerSecond * milliseconds) / 1000))
    : undefined
  const next = () => {
    const key = keys?.pop()
    return keys && !key ? undefined : buildAdmission(secret, BODY, key)
  }
  const run = () => closedLoop({ callers: CALLERS, milliseconds }, next, admit)
  return options.watch ? options.watch.during(run) : run()
}

/** Stores quoted rows that are not paid yet, and answers their key hashes. */
async function quote(admin: pg.Client, count: number): Promise<Buffer[]> {
  const keys = Array.from({ length: count }, (_, index) => createHash('sha256').update(`bench ${index}`).digest())
  await admin.query(
    `insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at)
     select gen_random_uuid(), decode(key, 'hex'), decode($2, 'hex'), 'quoted', $3::json, now() + interval '15 minutes'
     from unnest($1::text[]) key`,
    [keys.map((key) => key.toString('hex')), bodyHashOf(BODY), JSON.stringify(BODY)],
  )
  await admin.query('analyze verification_requests')
  return keys
}

const BODY = bodyFor('https://page.test/harbour')
