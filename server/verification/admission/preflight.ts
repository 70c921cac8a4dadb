// Preflight checks: a call that cannot succeed is refused before its caller is asked to pay.
import { AppError, sayUncharged } from '../../errors.ts'
import { claimCount, type PurchaseBody } from '../../interface/claims.ts'
import { priceOf } from '../../interface/price.ts'
import { type Fixtures, parsePublicUrl } from '../../outbound/url-policy.ts'

/**
 * Answers the URL of the source as it would be read. Throws AppError `budget_exceeded` if the price is above the caller's
 * budget, and what `parsePublicUrl` throws.
 */
export function checkPurchasable(body: PurchaseBody, fixtures: Fixtures): URL {
  const { options, source_url } = body
  const { usd } = priceOf(claimCount(body))
  const budget = options?.max_price_usd
  if (budget !== undefined && microUsd(budget) < microUsd(usd))
    throw new AppError(
      'budget_exceeded',
      sayUncharged(`The price is ${usd} USD, above options.max_price_usd of ${budget}.`),
    )
  try {
    return parsePublicUrl(source_url, fixtures)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'source_blocked') throw error
    throw new AppError('source_blocked', sayUncharged(error.message), { cause: error })
  }
}

/** Exact, unlike a floating-point number: `0.03` and `0.029999` differ by one. */
function microUsd(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.')
  return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))
}
