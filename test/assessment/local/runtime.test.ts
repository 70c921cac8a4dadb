// The runtime of the verifier in this repository is that of the package `onnxruntime-web` in the version of `package.json`, byte for byte.
import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const KEPT = new URL('../../../workers/assessment/local/runtime/', import.meta.url)
const PACKAGE = dirname(fileURLToPath(import.meta.resolve('onnxruntime-web/wasm')))
const FILES = ['ort-wasm-simd-threaded.mjs', 'ort-wasm-simd-threaded.wasm', 'ort.wasm.bundle.min.mjs']

t.test('the files are those of the package', async (t) => {
  t.strictSame(globSync('*.{wasm,mjs,js}', { cwd: fileURLToPath(KEPT) }).sort(), FILES)
  for (const name of FILES)
    t.ok(readFileSync(new URL(name, KEPT)).equals(readFileSync(`${PACKAGE}/${name}`)), `${name} is unchanged`)
})

t.test('the version that the texts name is the one installed', async (t) => {
  const { version } = JSON.parse(readFileSync(`${PACKAGE}/../package.json`, 'utf8'))
  t.match(readFileSync(new URL('README.md', KEPT), 'utf8'), `\`onnxruntime-web\` ${version}`)
  t.match(readFileSync(new URL('ort.wasm.bundle.min.mjs', KEPT), 'utf8'), `ONNX Runtime Web v${version}`)
})
