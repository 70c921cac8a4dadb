// A process that prunes results and their captures once, as a worker does every minute.
import { readConfig } from '../../server/config.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { pruneRequests } from '../../server/verification/pruning.ts'

const { databaseUrl = '', resultRetentionSeconds } = readConfig()
const db = await openDatabase(databaseUrl, { maxConnections: 1 })
await pruneRequests(db, resultRetentionSeconds)
await db.end()
