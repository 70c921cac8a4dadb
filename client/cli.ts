#!/usr/bin/env node
// The command line: verifies files offline, and looks at what a service publishes. Runs in Node only.
import { UsageError } from './arguments.ts'
import { cite } from './commands/cite.ts'
import { exportTo } from './commands/export.ts'
import { type Command, readArguments } from './commands/options.ts'
import { explain, print } from './commands/output.ts'
import { ask, keys, recover } from './commands/service.ts'
import { verify } from './commands/verify.ts'
import { watch } from './commands/watch.ts'

const HELP = `countersign: check what a source verification service has signed

  countersign verify FILE (--keys FILE | --pin KEYID:HEX)...   check a file offline; - reads standard input
  countersign cite FILE --format FORMAT                        a result as links, selectors, BibTeX or footnotes
  countersign export BASE_URL FILE                             the whole chain into a file; run again to go on
  countersign watch BASE_URL STATE_FILE                        keep the head pinned; report a fork or a rollback
  countersign keys BASE_URL                                    print the keys a service publishes
  countersign ask BASE_URL --source URL --claim TEXT           print the terms of one verification; pays nothing
  countersign recover BASE_URL REQUEST_ID --token FILE         print a result that was paid for, byte for byte

Examples:

  countersign keys https://service.example > keys.json
  countersign verify result.json --pin 1:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a
  countersign verify - --keys keys.json --json < result.json | jq .ok
  countersign cite result.json --format text-fragment
  countersign ask https://service.example --source https://example.org/ --claim 'It says so.' --dry-run
  countersign export https://service.example chain.jsonl && countersign verify chain.jsonl --keys keys.json

verify takes a completed result, a receipt, one attestation, an export, or consecutive attestations (an array, or a
page of /v1/chain), prints what a result says and one line per check, and needs the signing key from a source you trust
independently:

  --keys FILE          trusted keys as /v1/keys lists them
  --pin KEYID:HEX      one trusted key; may be repeated
  --introduced FILE    keys as /v1/keys lists them, trusted only where a trusted key introduces them
  --vkey VKEY          receipt, export: the trusted verifier key of the log's checkpoints
  --tree SIZE:ROOT     receipt: a tree that was pinned before, as a checkpoint names it; the root in hex
  --from SERIAL:HASH   attestations: the receipt before the first one
  --through SERIAL:HASH  export, attestations: a receipt that was pinned before; may be repeated
  --head SERIAL:HASH   export, attestations: the receipt it must end with
  --last-signature     export, attestations: check the last signature, which covers the rest through the links

cite reads a completed result and does not verify it:

  --format FORMAT      text-fragment (links that mark each quote on its page), selector (W3C Web Annotation), bibtex,
                       or markdown (footnotes; the default)

export pins the head it begins with, and goes on where a file stops:

  --head SERIAL:HASH   end at this receipt instead

watch:

  --vkey VKEY          the verifier key, from a source you trust, at the first run or in place of the one that is kept;
                       without it the first run takes the service's word
  --once               look once and exit
  --interval SECONDS   between two looks; 60

ask:

  --source URL         the page, https only
  --claim TEXT         the claim to hold against it
  --dry-run            send nothing; print the request and the published price

recover:

  --token FILE         the recovery token that came with the purchase; - reads standard input

every command:

  --json               results as JSON on standard output, errors as JSON on standard error
  -h, --help           this text

Exit status: 0 good, 1 bad or refused, 2 wrong usage; watch: 1 an alarm, 3 the service could not be asked.
`

const commands: Record<string, Command> = {
  verify: { operands: 1, run: ([file = ''], options) => verify(file, options) },
  cite: { operands: 1, run: ([file = ''], options) => cite(file, options) },
  export: { operands: 2, run: ([url = '', file = ''], options) => exportTo(url, file, options) },
  watch: { operands: 2, run: ([url = '', file = ''], options) => watch(url, file, options) },
  keys: { operands: 1, run: ([url = ''], options) => keys(url, options) },
  ask: { operands: 1, run: ([url = ''], options) => ask(url, options) },
  recover: { operands: 2, run: ([url = '', id = ''], options) => recover(url, id, options) },
}

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  try {
    const { values, positionals } = readArguments(args)
    if (values.help) return print(HELP)
    const [name = '', ...operands] = positionals
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (!command) throw new UsageError(name ? `There is no command ${name}.` : 'A command is missing.')
    if (operands.length !== command.operands)
      throw new UsageError(`${name} takes exactly ${command.operands === 1 ? 'one operand' : 'two operands'}.`)
    return await command.run(operands, values)
  } catch (error) {
    return explain(error, args.includes('--json'))
  }
}
