// The entry of the package `countersign-verifier` in Node: its sources in the repository, and where it is installed what was
// made of them, because Node reads TypeScript only outside node_modules.
const isInstalled = import.meta.url.includes('/node_modules/')

export const { assessLocally, loadVerifier, procedureOf, readVerifierFiles, RIGHT_OF_100, settings } = await import(
  isInstalled ? './dist/package.js' : './package.ts'
)
