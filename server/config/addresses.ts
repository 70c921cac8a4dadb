// The form of addresses of other services in variables.
import { z } from 'zod'

/** Without the slashes at its end. */
export const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ''))
export const origin = url.refine((value) => new URL(value).pathname === '/', 'must be an address without a path')
