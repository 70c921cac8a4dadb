// The price of one verification.

/**
 * One amount in two forms: `atomic` counts units of the asset, `usd` is the same in dollars. Both are written out, because the
 * interface fixes both texts and their types are these texts.
 */
export const PRICE = { atomic: '30000', usd: '0.03', currency: 'USDC', decimals: 6 } as const
