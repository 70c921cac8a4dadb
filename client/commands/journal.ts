// `countersign journal`: bytes that an account keeps in named slots.
import { UsageError } from '../arguments.ts'
import { type CommandGroup, command } from './command.ts'
import { confirm, YES } from './confirm.ts'
import { readInput } from './input-file.ts'
import { print } from './output.ts'
import { fields, table } from './tables.ts'
import { ACCOUNT, answer, openAccount } from './toolkit.ts'

const MAX_BYTES = 65_536

const put = command({
  summary: 'store the bytes of a file; - reads standard input',
  operands: ['SLOT', 'FILE'],
  about: `At most ${MAX_BYTES} bytes. The service stores them as they are: encrypt what must stay secret.`,
  examples: ['countersign journal put state state.json', 'tar c notes | countersign journal put notes - --new'],
  options: {
    ...ACCOUNT,
    new: { type: 'boolean', help: 'fail if the slot is there' },
    'if-match': {
      type: 'string',
      value: 'ETAG',
      help: 'fail if the slot is in another state; an etag that get showed',
    },
  },
  async run([slot = '', file = ''], options) {
    const { new: isNew, 'if-match': ifMatch } = options
    if (isNew && ifMatch !== undefined) throw new UsageError('--new and --if-match contradict each other.')
    const account = await openAccount(options)
    const data = await readInput(file)
    if (data.length > MAX_BYTES) throw new UsageError(`${file} has ${data.length} bytes; a slot holds ${MAX_BYTES}.`)
    const stored = await account.putJournalSlot({ slot, data }, { ifMatch, ifNoneMatch: isNew ? '*' : undefined })
    return answer(stored, options.json, () =>
      fields({ slot, bytes: stored.bytes, 'SHA-256': stored.sha256, at: stored.updated_at }),
    )
  },
})

const get = command({
  summary: 'print what a slot holds, byte for byte',
  operands: ['SLOT'],
  about: 'With --json: {slot, etag, data_base64}.',
  examples: ['countersign journal get state > state.json', 'countersign journal get state --json | jq -r .etag'],
  options: ACCOUNT,
  async run([slot = ''], options) {
    const { data, etag } = await (await openAccount(options)).getJournalSlot({ slot })
    if (!options.json) return print(data)
    return answer({ slot, etag, data_base64: Buffer.from(data).toString('base64') }, true, () => '')
  },
})

const list = command({
  summary: 'all slots',
  operands: [],
  examples: ['countersign journal list'],
  options: ACCOUNT,
  async run(_, options) {
    const found = await (await openAccount(options)).listJournalSlots()
    return answer(found, options.json, () =>
      table(found.slots, {
        slot: ({ slot }) => slot,
        bytes: ({ bytes }) => bytes,
        updated: ({ updated_at }) => updated_at,
        'sha-256': ({ sha256 }) => sha256,
      }),
    )
  },
})

const remove = command({
  summary: 'delete a slot and what it holds',
  operands: ['SLOT'],
  examples: ['countersign journal delete state --yes'],
  options: {
    ...ACCOUNT,
    'if-match': { type: 'string', value: 'ETAG', help: 'fail if the slot is in another state' },
    yes: YES,
  },
  async run([slot = ''], options) {
    const account = await openAccount(options)
    if (!(await confirm(`Delete the slot ${slot} and what it holds?`, options.yes))) return 2
    await account.deleteJournalSlot({ slot }, { ifMatch: options['if-match'] })
    return answer({ slot, deleted: true }, options.json, () => `${slot} is deleted.`)
  },
})

export const journal: CommandGroup = {
  summary: 'bytes that an account keeps in named slots',
  commands: { put, get, list, delete: remove },
  examples: ['countersign journal put state state.json', 'countersign journal get state > state.json'],
}
