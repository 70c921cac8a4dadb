// The size of tests that have no natural end: random properties, and enumerations of every change. `npm test` keeps them
// within seconds, `npm run test:long` does not.

export const LONG = process.env.TEST_LONG === '1'

/** How often a property is tried. */
export function rounds(usual: number): number {
  return LONG ? 20 * usual : usual
}
