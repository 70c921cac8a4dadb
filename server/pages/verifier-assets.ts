// The verifier as the page /verify fetches it: the script of its worker, the runtime in WebAssembly, and where the weights and
// tables are. Each is named by its digest, and the page says the sizes before it fetches anything.
import { createHash } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ServedFile, ServedVerifier } from '../../client/page/verify/served-verifier.ts'
import { procedureOf } from '../../workers/assessment/local/settings.ts'
import { readTables, settings, weightsLength } from '../../workers/assessment/local/weights.ts'
import { type Asset, assetOf, inTurn } from './assets.ts'

export interface VerifierAssets {
  worker: Asset
  /** What the page is told. */
  served: ServedVerifier
}

/** How the paths of the files at /assets/ begin. */
export const VERIFIER_PREFIX = '/assets/verifier-'
/** The worker runs WebAssembly and asks this host alone; it may load no other script. */
export const WORKER_HEADER = "default-src 'none'; script-src 'wasm-unsafe-eval'; connect-src 'self'"
/** The runtime: the same bytes that the service runs the model with. */
export const RUNTIME = new URL('../../workers/assessment/local/runtime/ort-wasm-simd-threaded.wasm', import.meta.url)
const SOURCE = fileURLToPath(new URL('../../workers/assessment/local/index.ts', import.meta.url))

let made: Promise<VerifierAssets> | undefined

/** The same for each call. A failure is thrown, and the next call tries again. */
export function openVerifierAssets(): Promise<VerifierAssets> {
  made ??= make().catch((error) => {
    made = undefined
    throw error
  })
  return made
}

async function make(): Promise<VerifierAssets> {
  const { buildVerifierWorker } = await import('../../client/page/build.ts')
  const script = await inTurn(() => buildVerifierWorker(SOURCE))
  const worker = await assetOf(`${VERIFIER_PREFIX}worker-*.js`, 'text/javascript; charset=utf-8', script)
  const tables = Buffer.from(readTables())
  const name = settings.weights_sha256
  return {
    worker,
    served: {
      procedure: procedureOf(settings),
      worker: worker.path,
      weights: { path: `/model/${name}.onnx`, bytes: weightsLength(), sha256: name },
      tables: {
        path: `/model/${name}.json`,
        bytes: tables.length,
        sha256: createHash('sha256').update(tables).digest('hex'),
      },
      runtime: await describeRuntime(),
    },
  }
}

async function describeRuntime(): Promise<ServedFile> {
  const sum = createHash('sha256')
  for await (const chunk of createReadStream(RUNTIME)) sum.update(chunk)
  const sha256 = sum.digest('hex')
  return { path: `${VERIFIER_PREFIX}runtime-${sha256}.wasm`, bytes: statSync(RUNTIME).size, sha256 }
}
