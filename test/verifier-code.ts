// Keeps the verifier's compiled WebAssembly as long as this process. V8 shares compiled code between threads while one of them holds it,
// so each further thread of the verifier saves about a second of the processor. Each still loads the weights and makes its session.
import { readFileSync } from 'node:fs'

const FILE = new URL('../workers/assessment/local/runtime/ort-wasm-simd-threaded.wasm', import.meta.url)

/** Exported so that the module holds it. */
export const verifierCode = await WebAssembly.compile(readFileSync(FILE))
