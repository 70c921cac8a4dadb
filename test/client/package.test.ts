// The client is packed on its own: what it imports must come with it.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const files = globSync('{,batch/,commands/,report/,wrappers/}*.ts', { cwd: join(root, 'client') })
/** The command line. */
const NEEDS_NODE = /^(cli\.ts$|batch\/|commands\/)/
/** Each has a framework as its optional peer. */
const WRAPPERS = /^wrappers\//
/** Two gigabytes: its assertion is tested against its documented shape. */
const TOO_LARGE = 'promptfoo'
const manifest = JSON.parse(read('client/package.json'))

function imports(file: string): string[] {
  const statements = read(`client/${file}`).matchAll(/^(?:import|export|\}).*?\bfrom '(.+)'$|^import '(.+)'$/gm)
  return [...statements].map(([, from, bare]) => from ?? bare ?? '')
}

t.test(
  'every import is a file of the client, a dependency, a peer in a wrapper, or Node in the command line',
  async (t) => {
    t.ok(files.length > 10)
    for (const file of files) {
      const peers = WRAPPERS.test(file) ? Object.keys(manifest.peerDependencies) : []
      const packages = [...Object.keys(manifest.dependencies), ...peers]
      for (const name of imports(file)) {
        const own = /^\.\.?\//.test(name) && files.includes(normalize(join(dirname(file), name)))
        const dependency = packages.some((one) => name === one || name.startsWith(`${one}/`))
        const node = NEEDS_NODE.test(file) && name.startsWith('node:')
        // Only types: what is needed at run time of an optional package is imported when it is needed.
        const isType = new RegExp(`^import type .* from '${name}'$`, 'm').test(read(`client/${file}`))
        const optional = isType && Object.hasOwn(manifest.peerDependencies, name)
        t.ok(own || dependency || optional || node, `${file} imports ${name}`)
      }
    }
  },
)

t.test('every peer is optional, and of the version tested here', async (t) => {
  const { devDependencies, dependencies } = JSON.parse(read('package.json'))
  const { peerDependencies, peerDependenciesMeta } = manifest
  for (const [name, range] of Object.entries(peerDependencies)) {
    t.same(peerDependenciesMeta[name], { optional: true }, name)
    const tested = dependencies[name] ?? devDependencies[name]
    // A version that the service pins may be a newer one for a caller.
    if (name !== TOO_LARGE) t.ok(tested === range || `^${tested}` === range, `${name} ${range}, tested with ${tested}`)
  }
})

t.test('nothing outside the command line needs Node', async (t) => {
  for (const file of files.filter((name) => !NEEDS_NODE.test(name)))
    t.notMatch(read(`client/${file}`), /\b(Buffer|process|require|setImmediate|__dirname)\b/, file)
})

t.test('the dependencies have the versions tested here', async (t) => {
  const { dependencies, devDependencies, version, license } = JSON.parse(read('package.json'))
  const tested = { ...devDependencies, ...dependencies }
  for (const [name, range] of Object.entries(manifest.dependencies)) t.equal(tested[name], range, name)
  t.match(manifest, { version, license })
})

t.test('every file that the manifest names is built from a file that exists', async (t) => {
  const { exports, bin } = manifest
  const { './package.json': itself, ...entries } = exports
  t.equal(itself, './package.json')
  const targets = [...Object.values<object>(entries).flatMap((entry) => Object.values(entry)), ...Object.values(bin)]
  for (const target of targets as string[]) {
    const source = target.replace(/^(\.\/)?dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts')
    t.ok(files.includes(source), target)
  }
})
