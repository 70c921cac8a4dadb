// The operation behind service_journal_get: a slot with its bytes in base64. HTTP sends the bytes as the body and the rest in
// headers.
import { z } from 'zod'
import { readSlot, slotName, slotRow } from '../journal/slots.ts'
import { defineAccountExchange } from '../operation.ts'

export const readJournalSlot = defineAccountExchange({
  name: 'read_journal_slot',
  summary: 'The bytes of a slot in base64, with their digest',
  method: 'GET',
  path: '/v1/journal/{slot}',
  family: 'control',
  access: 'account',
  scope: 'journal:read',
  errors: ['not_found'],
  kind: 'exchange',
  input: z.strictObject({ slot: slotName }),
  output: slotRow.extend({ data_base64: z.base64() }),
  async run({ slot }, { api, caller }) {
    const { content, ...found } = await readSlot(api.slots, caller.accountId, slot)
    return { ...found, data_base64: content.toString('base64') }
  },
})
