// Operations of the journal.
import { z } from 'zod'
import { LIMITS, tierLimit } from '../accounts/tiers.ts'
import { MAX_SLOT_BYTES } from '../interface/limits.ts'
import { defineAccountExchange, defineAccountOperation, Reply } from '../operation.ts'
import { isNotModified, requirePreconditions } from '../preconditions.ts'
import { requireRoom } from './bounds.ts'
import { deleteSlot, etagOf, listSlots, readSlot, slotName, slotRow, writeSlot } from './slots.ts'

const bytes = z.custom<Buffer>((value) => value instanceof Buffer)

export const putJournalSlot = defineAccountOperation({
  name: 'put_journal_slot',
  summary: 'Store bytes in a slot',
  description:
    'The service neither encrypts nor reads them: encrypt what must stay private. Only new slots count against ' +
    "the tier. With `If-None-Match: *` it only creates; with If-Match and the slot's ETag it replaces only that state.",
  method: 'PUT',
  path: '/v1/journal/{slot}',
  family: 'control',
  access: 'account',
  scope: 'journal:write',
  rawBody: { member: 'data', limit: MAX_SLOT_BYTES },
  conditional: true,
  statuses: [200, 201],
  errors: ['tier_limit', 'precondition_failed', 'capacity_exceeded'],
  kind: 'transaction',
  input: z.strictObject({ slot: slotName, data: bytes }),
  output: slotRow,
  async run({ slot, data }, { tx, caller, options }) {
    const { accountId, tier } = caller
    if (tier === 'free') await requireRoom(tx, accountId)
    const written = await writeSlot(
      tx,
      { accountId, slot, content: data, limit: LIMITS[tier].journal_slots },
      {
        permit: (present) => requirePreconditions(options, present && etagOf(present)),
        refuse: () => tierLimit('journal_slots', tier),
      },
    )
    return new Reply(written.slot, { status: written.made ? 201 : 200, headers: { etag: etagOf(written.slot) } })
  },
})

export const getJournalSlot = defineAccountExchange({
  name: 'get_journal_slot',
  summary: 'The exact bytes of a slot',
  method: 'GET',
  path: '/v1/journal/{slot}',
  family: 'control',
  access: 'account',
  scope: 'journal:read',
  rawAnswer: 'application/octet-stream',
  conditional: true,
  statuses: [200, 304],
  errors: ['not_found', 'precondition_failed'],
  kind: 'exchange',
  input: z.strictObject({ slot: slotName }),
  output: bytes,
  async run({ slot }, { api, caller, options }) {
    const found = await readSlot(api.slots, caller.accountId, slot)
    const etag = etagOf(found)
    const headers = { etag }
    if (isNotModified(options, etag)) return new Reply(Buffer.alloc(0), { status: 304, headers })
    const type = { 'content-type': 'application/octet-stream', 'x-content-type-options': 'nosniff' }
    return new Reply(found.content, { headers: { ...headers, ...type } })
  },
})

export const deleteJournalSlot = defineAccountOperation({
  name: 'delete_journal_slot',
  summary: 'Remove a slot',
  method: 'DELETE',
  path: '/v1/journal/{slot}',
  family: 'control',
  access: 'account',
  scope: 'journal:write',
  conditional: true,
  statuses: [204],
  errors: ['not_found', 'precondition_failed'],
  kind: 'transaction',
  input: z.strictObject({ slot: slotName }),
  output: z.null(),
  async run({ slot }, { tx, caller, options }) {
    await deleteSlot(tx, caller.accountId, slot, (present) => requirePreconditions(options, etagOf(present)))
    return new Reply(null, { status: 204 })
  },
})

export const listJournalSlots = defineAccountOperation({
  name: 'list_journal_slots',
  summary: "The account's slots, without their bytes",
  method: 'GET',
  path: '/v1/journal',
  family: 'control',
  access: 'account',
  scope: 'journal:read',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({ slots: z.array(slotRow) }),
  run: async (_input, { tx, caller }) => ({ slots: [...(await listSlots(tx, caller.accountId))] }),
})
