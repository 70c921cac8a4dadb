// Processes of the bench and of the tests are started as package.json starts them: with the same flags of Node and the same variables.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Start {
  flags: string[]
  env: Record<string, string>
}

/**
 * How a script starts this file, e.g. `NAME=1 exec node --flag server/main.ts`; nothing where no script does. A variable of the shell has
 * its default.
 * @param file from the root of the repository
 * @param root of the code that is run, where it is another version of this one
 */
export function startOf(file: string, root = ROOT): Start {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  for (const script of Object.values(scripts)) {
    const words = script.replace(/\$\{\w+:-(\w+)\}/g, '$1').split(' ')
    const node = words.indexOf('node')
    if (node < 0 || words.at(-1) !== file) continue
    const variables = words.slice(0, node).filter((word) => word.includes('='))
    const env = Object.fromEntries(variables.map((word) => word.split('=') as [string, string]))
    return { flags: words.slice(node + 1, -1), env }
  }
  return { flags: [], env: {} }
}

const ROOT = join(import.meta.dirname, '..')
