// A process that runs the whole service for one call, and reports which modules of OpenTelemetry it loaded.
import { registerHooks } from 'node:module'

const loaded = new Set<string>()
registerHooks({
  load(url, context, next) {
    const name = /\/node_modules\/(@opentelemetry\/[^/]+)\//.exec(url)?.[1]
    if (name) loaded.add(name)
    return next(url, context)
  },
})
// After the hooks are in place.
const { readConfig } = await import('../../server/config.ts')
const { openService } = await import('../../server/service.ts')

const config = readConfig()
const service = await openService(config, config.databaseUrl ?? '')
const { status } = await fetch(new URL('/v1/chain-head', service.address))
await service[Symbol.asyncDispose]()
process.send?.({ type: 'loaded', status, modules: [...loaded] })
process.disconnect()
