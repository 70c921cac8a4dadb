// The client is packed on its own: what it imports must come with it.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { pack, run, succeed } from './packing.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const files = globSync('{,batch/,chain/,commands/,commands/*/,evidence/,operations/,report/,wrappers/}*.ts', {
  cwd: join(root, 'client'),
})
/** The command line. */
const NEEDS_NODE = /^(cli\.ts$|batch\/|commands\/)/
/** Each has a framework as its optional peer. */
const WRAPPERS = /^wrappers\//
/** Two gigabytes: its assertion is tested against its documented shape. */
const TOO_LARGE = 'promptfoo'
/** npm asks the registry for the versions that are out. Here is none, and npm would ask it again for a minute. */
const DRY = ['publish', '--dry-run', '--json', '--ignore-scripts', '--fetch-retries=0']
const cli = JSON.parse(read('client/package.json'))
const sdk = JSON.parse(read('client/sdk/package.json'))

function imports(file: string): string[] {
  const statements = read(`client/${file}`).matchAll(/^(?:import|export|\}).*?\bfrom '(.+)'$|^import '(.+)'$/gm)
  return [...statements].map(([, from, bare]) => from ?? bare ?? '')
}

t.test(
  'every import is a file of the client, a dependency, a peer in a wrapper, or Node in the command line',
  async (t) => {
    t.ok(files.length > 10)
    for (const file of files) {
      const isSdk = !NEEDS_NODE.test(file) && !/^(evidence|report)\//.test(file)
      const peers = WRAPPERS.test(file) ? Object.keys(sdk.peerDependencies) : []
      const packages = [...Object.keys(isSdk ? sdk.dependencies : cli.dependencies), ...peers]
      for (const name of imports(file)) {
        const own = /^\.\.?\//.test(name) && files.includes(normalize(join(dirname(file), name)))
        const dependency = packages.some((one) => name === one || name.startsWith(`${one}/`))
        const node = NEEDS_NODE.test(file) && name.startsWith('node:')
        // Only types: what is needed at run time of an optional package is imported when it is needed.
        const isType = new RegExp(`^import type .* from '${name}'$`, 'm').test(read(`client/${file}`))
        const optional = isType && Object.hasOwn({ ...sdk.peerDependencies, ...cli.dependencies }, name)
        t.ok(own || dependency || optional || node, `${file} imports ${name}`)
      }
    }
  },
)

t.test('every peer is optional, and of the version tested here', async (t) => {
  const { devDependencies, dependencies } = JSON.parse(read('package.json'))
  const { peerDependencies, peerDependenciesMeta } = sdk
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
  for (const manifest of [cli, sdk]) {
    for (const [name, range] of Object.entries(manifest.dependencies)) t.equal(tested[name], range, name)
    t.match(manifest, { version, license, engines: { node: '>=20' }, publishConfig: { provenance: true } })
  }
  t.same([cli.name, sdk.name], ['countersign', 'countersign-sdk'])
})

t.test('every file that the manifest names is built from a file that exists', async (t) => {
  const { exports } = sdk
  const { bin } = cli
  const { './package.json': itself, ...entries } = exports
  t.equal(itself, './package.json')
  const targets = [...Object.values<object>(entries).flatMap((entry) => Object.values(entry)), ...Object.values(bin)]
  for (const target of targets as string[]) {
    const source = target.replace(/^(\.\/)?dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts')
    t.ok(files.includes(source), target)
  }
})

t.test(
  'both packages can be published: npm has nothing to correct, and the tarball holds what the manifest names',
  async (t) => {
    for (const source of ['client', 'client/sdk']) {
      const { tarball, checkout, manifest } = await pack(source)
      const options = [...DRY, '--registry', 'http://127.0.0.1:9']
      const { code, stdout, stderr } = await run('npm', options, join(checkout, source))
      t.equal(code, 0, stderr)
      t.notMatch(stderr.replace(/^.*requires you to be logged in.*$/m, ''), /warn/i)
      t.match(stdout, manifest.name)
      const packed = (await succeed('tar', ['-tzf', tarball], checkout)).split('\n')
      for (const name of ['package/package.json', 'package/README.md', 'package/LICENSE'])
        t.ok(packed.includes(name), name)
      for (const target of Object.values(manifest.bin ?? {})) t.ok(packed.includes(`package/${target}`), target)
      t.notOk(
        packed.some((name) => /\.ts$/.test(name) && !/\.d\.ts$/.test(name)),
        'no sources',
      )
    }
  },
)

t.test('README of the library is a page, and its code is code of the guide, which is run', async (t) => {
  const [readme, guide] = [read('client/sdk/README.md'), read('docs/guide/sdk.md')]
  t.ok(readme.split('\n').length <= 80)
  const blocks = [...readme.matchAll(/^```ts\n[\s\S]*?^```$/gm)].map(([block]) => block)
  t.equal(blocks.length, 2)
  for (const block of blocks) t.ok(guide.includes(block), block)
})
