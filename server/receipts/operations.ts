// What anyone may ask of the receipts.
import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { listKeys, publicKey } from './keys.ts'

export const getKeys = defineOperation({
  name: 'get_keys',
  summary: 'Every public key the service ever signed with',
  description: 'Pin these through a channel you trust; a key that comes with a receipt proves nothing by itself.',
  method: 'GET',
  path: '/v1/keys',
  family: 'control',
  access: 'public',
  kind: 'transaction',
  input: z.object({}),
  output: z.strictObject({ keys: z.array(publicKey) }),
  run: async (_input, { tx }) => ({ keys: [...(await listKeys(tx))] }),
})
