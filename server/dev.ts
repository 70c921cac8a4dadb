// `npm start`: the whole service in one process, with an embedded database unless DATABASE_URL is set.
import { randomUUID } from 'node:crypto'
import { type Config, readConfig } from './config.ts'
import { migrate } from './db/migrate.ts'
import { openEmbeddedPostgres } from './embedded/postgres.ts'
import { runProcess } from './process.ts'
import { openService } from './service.ts'
import { describeAssessment } from './verification/offer/offer.ts'

await runProcess(async (opened) => {
  const config = readConfig()
  const databaseUrl = config.databaseUrl ?? (await openOwnDatabase(config.dataDir, opened))
  await migrate(config.databaseDirectUrl ?? databaseUrl)
  const service = opened.use(await openService(config, databaseUrl))
  console.log(greeting(service.address, config))
  return { log: service.api.log, died: service.runner.died, stopping: () => service.api.drain() }
})

async function openOwnDatabase(dataDir: string, opened: AsyncDisposableStack) {
  const postgres = await openEmbeddedPostgres({
    dataDir,
    durable: true,
    log: (line) => console.log(`postgres: ${line}`),
  })
  return opened.use(postgres).url
}

function greeting(address: string, config: Config) {
  return `
Countersign is at ${address}

  payment mode  ${config.paymentMode}
  assessment    ${describeAssessment(config)}

  curl -i ${address}/api/agent/v1/verify-source \\
    -H 'Content-Type: application/json' -H 'Idempotency-Key: ${randomUUID()}' \\
    -d '{"source_url": "https://example.com/", "claim": "This domain is for use in documentation examples."}'

answers 402 with the terms of payment. ${address}/docs shows the rest; \`npm run demo\` buys one. Ctrl-C stops.
`
}
