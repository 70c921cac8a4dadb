// Every command of the command line that a text names exists: in the client, the documents, the pages of the service, and the action.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Command } from '../../client/commands/command.ts'
import { countersign } from '../../client/commands/main.ts'

const root = join(import.meta.dirname, '../..')
const PATTERNS = [
  '*.md',
  '*.yml',
  'docs/**/*.md',
  '{client,server/pages,server/mcp}/**/*.{ts,md,sh}',
  'server/*.ts',
  'bench/**/*.md',
]

/** The named command that does not exist, as `citation put`; none in the words of a sentence. */
function unknown(text: string): string[] {
  // `alter role countersign set` is SQL, and `mcp add countersign https:` names a server of MCP.
  return [...text.matchAll(/(?<![\w/@.-]|role )countersign (?!https:)([a-z]+)(?: ([a-z]+))?/g)].flatMap(
    ([, one = '', two]) => {
      if (!Object.hasOwn(countersign.commands, one)) return [one]
      const command: Command | undefined = countersign.commands[one]
      const isGroup = command && 'commands' in command
      return isGroup && two !== undefined && !Object.hasOwn(command.commands, two) ? [`${one} ${two}`] : []
    },
  )
}

t.test('every command that a text names exists', async (t) => {
  const files = globSync(PATTERNS, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] })
  t.ok(files.length > 200, String(files.length))
  const faults = files.flatMap((file) =>
    unknown(readFileSync(join(root, file), 'utf8')).map((name) => `${file}: ${name}`),
  )
  t.same(faults, [])
  t.same(unknown('<code>countersign citation put</code>, countersign lease grant, `countersign verify result.json`'), [
    'citation put',
  ])
})
