// The command line of the programs that measure and try the service: their help, and one line for a wrong call.
import { UsageError } from '../client/arguments.ts'
import { type CommandDefinition, command, type OptionTable, start, type Values } from '../client/commands/command.ts'

export interface Call<O extends OptionTable> {
  operands: readonly string[]
  options: Values<O>
}

/**
 * Reads the arguments of this process. Where they ask for the help, prints it and ends the process with 0; where they are wrong,
 * ends it as `refuse` does.
 * @param name what is typed before the arguments
 */
export async function readCall<const O extends OptionTable>(
  name: string,
  definition: Omit<CommandDefinition<O>, 'run' | 'json'>,
): Promise<Call<O>> {
  let call: Call<O> | undefined
  const program = command<O>({
    ...definition,
    json: false,
    run: async (operands, options) => {
      call = { operands, options }
      return 0
    },
  })
  try {
    await start(name, program, process.argv.slice(2))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    // What follows the first sentence explains arguments in general.
    refuse(name, `${error.message.split('. ', 1)[0]!.replace(/\.$/, '')}.`)
  }
  return call ?? process.exit(0)
}

/** Says in one line why a call is wrong, and ends the process with 2. */
export function refuse(name: string, why: string): never {
  console.error(`${name.replace(/ --$/, '')}: ${why} See ${name} --help.`)
  process.exit(2)
}

export interface Part<Run> {
  about: string
  run: Run
}

/** The parts that are named, or all. Ends the process as `refuse` does for a name that is none. */
export function chooseParts<Run>(
  name: string,
  parts: Readonly<Record<string, Part<Run>>>,
  named: readonly string[],
): Run[] {
  const unknown = named.find((part) => !Object.hasOwn(parts, part))
  if (unknown !== undefined) refuse(name, `No part is called ${unknown}: there are ${Object.keys(parts).join(', ')}.`)
  const chosen = named.length > 0 ? named : Object.keys(parts)
  return chosen.map((part) => parts[part]!.run)
}

/** For the help. */
export function describeParts(parts: Readonly<Record<string, Pick<Part<unknown>, 'about'>>>): string {
  const width = Math.max(...Object.keys(parts).map((part) => part.length))
  const lines = Object.entries(parts).map(([part, { about }]) => `  ${part.padEnd(width)}  ${about}`)
  return `Parts, all where none is named:\n\n${lines.join('\n')}`
}

/** An option that is a number. Ends the process as `refuse` does for any other text, and below `least`. */
export function numberOption(name: string, option: string, text: string, least = Number.MIN_VALUE): number {
  const value = Number(text)
  if (value >= least) return value
  const bound = least === Number.MIN_VALUE ? 'above 0' : `of at least ${least}`
  return refuse(name, `--${option} ${text} is no number ${bound}.`)
}

/** What every program of this folder needs, for its help. */
export const NEEDS =
  'Needs Postgres: an embedded one in a temporary folder, which is deleted afterwards, or the server that DATABASE_URL names.\n' +
  'Its figures mean something on a machine without other work.'
