// The entry `countersign-verifier/page` in Node: its source in the repository, and where it is installed the one file that was made
// of it.
const isInstalled = import.meta.url.includes('/node_modules/')

export const { pageProcedure, readPage } = await import(isInstalled ? './dist/page.js' : '../../text/page/reading.ts')
