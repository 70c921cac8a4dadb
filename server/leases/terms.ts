// The terms of a lease that an account chooses, and their limits.
import { z } from 'zod'
import { codePoints } from '../interface/scalars.ts'

/** Longest time in ms after which a revocation takes effect at a gateway that never asks the service. */
export const RECHECK_MS = 30_000
/** Longest life of a lease in seconds, over all renewals. */
export const MAX_TTL_S = 86_400

const characters = (min: number, max: number) =>
  z
    .string()
    .refine((text) => text.isWellFormed(), 'must be well-formed Unicode')
    .refine((text) => codePoints(text) >= min && codePoints(text) <= max, `must have ${min} to ${max} characters`)
    .meta({ minLength: min, maxLength: max })

export const leaseTerms = z.strictObject({
  agent: characters(1, 200).describe('Who may act. The gateway compares it with the agent that asks.'),
  action: characters(1, 200).describe(
    'What may be done. The gateway compares it with the action that the agent asks for.',
  ),
  lim: characters(0, 1000).describe('Policy, signed unchanged. Only the gateway reads and enforces it.'),
  ttl_s: z.int().min(1).max(MAX_TTL_S).describe('Seconds until the lease ends, however often it is renewed.'),
})
export type LeaseTerms = z.output<typeof leaseTerms>
