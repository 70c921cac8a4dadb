// The name of the procedure from a URL to a text, the first part of every `methodology_version`. The web process reads it
// too, so nothing that fetches or parses is imported here.
import { TEXT_PROCEDURE } from '../text/procedure.ts'

/** Increase it when the fetch changes. The procedure of the text follows it. */
const RETRIEVAL_PROCEDURE = 'retrieval-1'
export const OBSERVATION_PROCEDURE = `${RETRIEVAL_PROCEDURE}+${TEXT_PROCEDURE}`

/**
 * The name of an assessment whose page went through the gate of page-quality.ts. After a change of a rule there, increase
 * its number.
 */
export const gatedProcedure = (procedure: string): string => `${procedure}+gate-4`
