// The client is packed on its own: what it imports must come with it.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const files = globSync('{,batch/,commands/,report/}*.ts', { cwd: join(root, 'client') })
/** The command line. */
const NEEDS_NODE = /^(cli\.ts$|batch\/|commands\/)/
const manifest = JSON.parse(read('client/package.json'))

function imports(file: string): string[] {
  const statements = read(`client/${file}`).matchAll(/^(?:import|export|\}).*?\bfrom '(.+)'$|^import '(.+)'$/gm)
  return [...statements].map(([, from, bare]) => from ?? bare ?? '')
}

t.test('every import is a file of the client, a dependency of it, or Node in the command line', async (t) => {
  t.ok(files.length > 10)
  const packages = Object.keys(manifest.dependencies)
  for (const file of files)
    for (const name of imports(file)) {
      const own = /^\.\.?\//.test(name) && files.includes(normalize(join(dirname(file), name)))
      // Only types: what is needed at run time of an optional package is imported when it is needed.
      const isType = new RegExp(`^import type .* from '${name}'$`, 'm').test(read(`client/${file}`))
      const optional = isType && Object.hasOwn(manifest.peerDependencies, name)
      const dependency = packages.some((one) => name === one || name.startsWith(`${one}/`))
      const node = NEEDS_NODE.test(file) && name.startsWith('node:')
      t.ok(own || dependency || optional || node, `${file} imports ${name}`)
    }
})

t.test('nothing outside the command line needs Node', async (t) => {
  for (const file of files.filter((name) => !NEEDS_NODE.test(name)))
    t.notMatch(read(`client/${file}`), /\b(Buffer|process|require|setImmediate|__dirname)\b/, file)
})

t.test('the dependencies are the ones tested here', async (t) => {
  const { dependencies, devDependencies, version, license } = JSON.parse(read('package.json'))
  const tested = { ...devDependencies, ...dependencies }
  for (const [name, range] of Object.entries(manifest.dependencies)) t.equal(tested[name], range, name)
  for (const name of ['mdast-util-from-markdown', 'mdast-util-gfm', 'micromark-extension-gfm', 'parse5'])
    t.equal(tested[name], manifest.peerDependencies[name], name)
  t.match(manifest, { version, license })
})

t.test('what the manifest names is made from a file that exists', async (t) => {
  const { exports, bin } = manifest
  const { './package.json': itself, ...entries } = exports
  t.equal(itself, './package.json')
  const targets = [...Object.values<object>(entries).flatMap((entry) => Object.values(entry)), ...Object.values(bin)]
  for (const target of targets as string[]) {
    const source = target.replace(/^(\.\/)?dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts')
    t.ok(files.includes(source), target)
  }
})
