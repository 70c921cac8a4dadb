// Recomputes the verdict of a result with the package `countersign-verifier`, which holds the procedure and the weights. It is
// loaded only here: the client works without it.
import { MissingError } from '../../arguments.ts'
import type { Check } from '../../checks.ts'
import type { PageReader } from '../../evidence/replay.ts'
import { compareVerdicts, type Recomputed, recomputableIn } from '../../recomputation.ts'
import { parseJson } from '../../verification.ts'

/** What the package exports, as far as it is used here. */
interface VerifierPackage {
  settings: { methodology: string; weights_sha256: string }
  procedureOf(settings: object): string
  readVerifierFiles(folder?: string): object
  loadVerifier(files: object): Promise<AsyncDisposable>
  assessLocally(verifier: object, text: string, claim: string): Promise<Recomputed>
}

const PACKAGE = 'countersign-verifier'
const INSTALL = `npm install ${PACKAGE}`

/** The way from bytes to text, for `countersign replay`. A MissingError says in one line how to get it. */
export async function loadPageReader(): Promise<PageReader> {
  return (await loadModule(`${PACKAGE}/page`, 'To make the text of a page again')) as PageReader
}

/** The check `recomputed`. A MissingError says in one line why it cannot be recomputed. */
export async function recompute(document: string, weights: string | undefined): Promise<Check> {
  const given = recomputableIn(parsed(document))
  if (typeof given === 'string') throw new MissingError(given)
  const verifier = (await loadModule(PACKAGE, 'To recompute a verdict')) as VerifierPackage
  const own = verifier.procedureOf(verifier.settings)
  if (given.procedure !== own)
    throw new MissingError(
      `Other weights gave this verdict: it names ${given.procedure}, and the installed ${PACKAGE} has ${own}. Install the version of ${PACKAGE} with these weights.`,
    )
  await using loaded = await load(verifier, weights)
  const found: Recomputed[] = []
  for (const { claim } of given.verdicts) found.push(await verifier.assessLocally(loaded, given.text, claim))
  return compareVerdicts(given, found)
}

function parsed(document: string): unknown {
  try {
    return parseJson(document)
  } catch {
    return null
  }
}

async function loadModule(name: string, purpose: string): Promise<unknown> {
  try {
    return await import(name)
  } catch (cause) {
    // An older version of the package has no such entry.
    const { code } = cause as NodeJS.ErrnoException
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw cause
    throw new MissingError(`${purpose}, install the verifier beside this program: ${INSTALL}`, { cause })
  }
}

async function load(verifier: VerifierPackage, weights: string | undefined): Promise<AsyncDisposable> {
  try {
    return await verifier.loadVerifier(verifier.readVerifierFiles(weights))
  } catch (cause) {
    const where = weights === undefined ? `the package ${PACKAGE}` : weights
    throw new MissingError(
      `No usable weights in ${where}: ${(cause as Error).message}. Install them: ${INSTALL}, or name a folder that holds ${verifier.settings.weights_sha256}.onnx from /model/ of the service.`,
      { cause },
    )
  }
}
