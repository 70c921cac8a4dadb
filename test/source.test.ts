// The compiler and the linter find nothing, like `npm run types` and `npm run lint`. They run in parallel with the other
// tests.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')

async function run(program: string, ...args: string[]) {
  const child = spawn(join(ROOT, 'node_modules/.bin', program), args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, said: `${stdout}${stderr}`.trim() }
}

t.test('every type is right', async (t) => {
  // Each further checker reads the types of all packages again, which takes longer than to check this repository.
  t.same(await run('tsc', '--checkers', '1'), { code: 0, said: '' })
})

t.test('the linter and the formatter find nothing', async (t) => {
  const { code, said } = await run('biome', 'check')
  t.equal(code === 0 ? '' : said, '')
})
