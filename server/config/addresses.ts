// The form of addresses in variables: of this service and others, and of those who are paid.
import { keccak_256 } from '@noble/hashes/sha3.js'
import { z } from 'zod'

/** Without the slashes at its end. */
export const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ''))
export const origin = url.refine((value) => new URL(value).pathname === '/', 'must be an address without a path')

/** The address of this service, which every link begins with. */
export const publicAddress = url.refine((value) => {
  const { username, password } = new URL(value)
  return username === '' && password === '' && !/[?#]/.test(value)
}, 'must be an address without a user name, a query and a fragment')

export const evmAddress = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an EVM address')
  .refine((address) => !/^0x0{40}$/.test(address), 'must not be the zero address, which USDC cannot be sent to')
  .refine(hasRightChecksum, 'has a wrong checksum (EIP-55): one of its characters is mistaken')

/** By EIP-55 the case of letters is a checksum, unless all are of one case. */
function hasRightChecksum(address: string): boolean {
  const digits = address.slice(2)
  const lower = digits.toLowerCase()
  if (digits === lower || digits === digits.toUpperCase()) return true
  const hash = Buffer.from(keccak_256(Buffer.from(lower))).toString('hex')
  return [...lower].every((digit, i) => (/[89a-f]/.test(hash[i] ?? '') ? digit.toUpperCase() : digit) === digits[i])
}
