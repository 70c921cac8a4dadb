// Makes what the package holds for `countersign-verifier/page`, when it is packed: one file with all that it needs, its types, and the
// licences of the packages in it. Needs the packages of development.
import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const { metafile } = await build({
  entryPoints: ['../../text/page/reading.ts'],
  outfile: 'dist/page.js',
  bundle: true,
  minify: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  legalComments: 'none',
  metafile: true,
})

const folders = Object.keys(metafile.inputs).flatMap(
  (path) => path.match(/^.*node_modules\/(@[^/]+\/)?[^/]+/)?.[0] ?? [],
)
const licences = [...new Set(folders)].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = globSync('{LICEN[CS]E,licen[cs]e}*', { cwd: folder })
  const text = files.map((file) => readFileSync(join(folder, file), 'utf8').trim()).join('\n\n')
  return `${name} ${version}, ${license}\n\n${text}\n`
})
writeFileSync('dist/page-licences.txt', `dist/page.js contains code of these packages.\n\n${licences.join('\n\n')}`)

// The types of the entry alone: none of them names a type of another file.
execFileSync('tsc', ['-p', 'tsconfig.page.json'], { stdio: 'inherit' })
copyFileSync('dist/declared/workers/text/page/reading.d.ts', 'dist/page.d.ts')
rmSync('dist/declared', { recursive: true })
