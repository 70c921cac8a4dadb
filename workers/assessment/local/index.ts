// What the package `countersign-verifier` exports: the local assessment, to be recomputed by anyone who has text and claim.
export { assessLocally, type LocalAssessment, type Reading } from './assessment.ts'
export type { LocalQuote, Side, Verdict } from './explanation.ts'
export { RIGHT_OF_100 } from './explanation.ts'
export { procedureOf, type Settings } from './settings.ts'
export { loadVerifier, type Verifier, type VerifierFiles } from './verifier.ts'
