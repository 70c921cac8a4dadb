// The client is packed on its own: what it imports must come with it.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const files = readdirSync(join(root, 'client')).filter((name) => name.endsWith('.ts'))
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
      const own = name.startsWith('./') && files.includes(name.slice(2))
      const dependency = packages.some((one) => name === one || name.startsWith(`${one}/`))
      const node = file === 'cli.ts' && name.startsWith('node:')
      t.ok(own || dependency || node, `${file} imports ${name}`)
    }
})

t.test('nothing outside the command line needs Node', async (t) => {
  for (const file of files.filter((name) => name !== 'cli.ts'))
    t.notMatch(read(`client/${file}`), /\b(Buffer|process|require|setImmediate|__dirname)\b/, file)
})

t.test('the dependencies are the ones tested here', async (t) => {
  const { dependencies, version, license } = JSON.parse(read('package.json'))
  for (const [name, range] of Object.entries(manifest.dependencies)) t.equal(dependencies[name], range, name)
  t.match(manifest, { version, license })
})

t.test('what the manifest names is made from a file that exists', async (t) => {
  const { exports, bin } = manifest
  const targets = [...Object.values<object>(exports).flatMap((entry) => Object.values(entry)), ...Object.values(bin)]
  for (const target of targets as string[]) {
    const source = target.replace(/^(\.\/)?dist\//, '').replace(/(\.d\.ts|\.js)$/, '.ts')
    t.ok(files.includes(source), target)
  }
})
