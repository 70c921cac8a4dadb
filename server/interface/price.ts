// The prices of verifications: of one claim on one page, and of several claims on one page.

export interface Price {
  /** Atomic units of the asset. */
  atomic: string
  /** The same in dollars. */
  usd: string
}

/**
 * One amount in two forms: `atomic` counts units of the asset, `usd` is the same in dollars. Both are written out, because the
 * interface fixes both texts and their types are these texts.
 */
export const PRICE = { atomic: '30000', usd: '0.03', currency: 'USDC', decimals: 6 } as const

/** What each claim after the first adds to the price of a page. */
export const FURTHER_CLAIM: Price = { atomic: '10000', usd: '0.01' }

/** The most claims of one purchase. */
export const MOST_CLAIMS = 10

/** The price of a purchase. @param claims how many claims it has, 1 to MOST_CLAIMS; null: it is a purchase of verify-source */
export function priceOf(claims: number | null): Price {
  if (claims === null) return PRICE
  const atomic = String(BigInt(PRICE.atomic) + BigInt(FURTHER_CLAIM.atomic) * BigInt(claims - 1))
  return { atomic, usd: usdOf(atomic) }
}

/** The most that one purchase costs. */
export const HIGHEST_PRICE: Price = priceOf(MOST_CLAIMS)

/** Exact dollars, with two digits after the point at least. @param atomic units of the asset, which has six decimals */
export function usdOf(atomic: string): string {
  const digits = atomic.padStart(PRICE.decimals + 1, '0')
  const cents = digits.slice(0, -PRICE.decimals + 2)
  const rest = digits.slice(-PRICE.decimals + 2).replace(/0+$/, '')
  return `${cents.slice(0, -2)}.${cents.slice(-2)}${rest}`
}

/** Whether some purchase costs exactly this many atomic units. */
export function isPrice(atomic: bigint): boolean {
  const further = atomic - BigInt(PRICE.atomic)
  return further >= 0n && atomic <= BigInt(HIGHEST_PRICE.atomic) && further % BigInt(FURTHER_CLAIM.atomic) === 0n
}
