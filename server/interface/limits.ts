// The upper limits of the interface. Nothing is imported here, because threads that read pages load this file without zod.

/** The upper limits of the interface. A result's `limits` names those that its retrieval used. */
export const LIMITS = {
  urlChars: 2048,
  claimChars: 2000,
  evidenceItems: 6,
  quoteChars: 1000,
  explanationChars: 800,
  riskFlags: 32,
  textChars: 100_000,
  redirects: 5,
  wireBytes: 4_194_304,
  decodedBytes: 8_388_608,
  headerBytes: 65_536,
  socketTimeoutSeconds: 15,
  timeoutSeconds: 60,
} as const

/** Of a quote that is to be checked. */
export const MAX_QUOTE_CHARS = 1000
/** Of a slot of the journal. */
export const MAX_SLOT_BYTES = 65_536
