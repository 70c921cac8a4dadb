// The form of the names that accounts give to their watchdogs, citation watches and journal slots.
import { z } from 'zod'

export const ownName = z.string().regex(/^[A-Za-z0-9._-]{1,128}$/, 'must be 1 to 128 of A-Z a-z 0-9 . _ -')
