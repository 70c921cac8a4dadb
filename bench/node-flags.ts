// Processes of the bench and of the tests are started as package.json starts them: with the same flags of Node.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

/**
 * The flags with which a script runs this file; none where no script does. A variable of the shell has its default.
 * @param file from the root of the repository
 */
export function flagsOf(file: string): string[] {
  const commands = Object.values(scripts).map((script) => script.replace(/^exec /, '').split(' '))
  const command = commands.find((words) => words[0] === 'node' && words.at(-1) === file)
  return command?.slice(1, -1).map((flag) => flag.replace(/\$\{\w+:-(\w+)\}/g, '$1')) ?? []
}
