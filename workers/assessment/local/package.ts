// What the package `countersign-verifier` exports in Node: the procedure, and the weights that come with it.
export * from './index.ts'
export { readVerifierFiles, settings } from './weights.ts'
