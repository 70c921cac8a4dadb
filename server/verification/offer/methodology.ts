// Explains `methodology_version`. A version is a list of parts; each part that was ever in force keeps its explanation here, so
// that old results can still be understood.
import { z } from 'zod'
import { LITERAL_PROCEDURE, LOCAL_PROCEDURE, semanticProcedure } from '../../../workers/assessment/procedure.ts'
import { gatedProcedure, OBSERVATION_PROCEDURE } from '../../../workers/retrieval/procedure.ts'
import type { Config } from '../../config.ts'
import { AppError } from '../../errors.ts'
import { type Call, defineExchange } from '../../operation.ts'
import { LITERAL, LOCAL, OBSERVATION, type Place, SEMANTIC } from './methodology-parts.ts'

type MethodologyConfig = Pick<Config, 'assessment' | 'model'>

/** The versions of results under this configuration; the second only if a fallback is configured. */
export function configuredMethodologies({ assessment, model }: MethodologyConfig): [string, ...string[]] {
  const own = { literal: compose(LITERAL_PROCEDURE), local: compose(LOCAL_PROCEDURE) }
  if (!model) return [own[assessment.kind === 'literal' ? 'literal' : 'local']]
  const semantic = compose(semanticProcedure(model.model, assessment.windowTokens))
  return assessment.fallback === 'none' ? [semantic] : [semantic, own[assessment.fallback]]
}

const compose = (procedure: string) => `${OBSERVATION_PROCEDURE} ${gatedProcedure(procedure)}`

const methodology = z.strictObject({
  methodology_version: z.string().min(1).max(256),
  in_force: z.boolean().describe('Whether new results carry it.'),
  parts: z.array(z.strictObject({ part: z.string(), meaning: z.string() })),
})

export const getMethodologies = defineExchange({
  name: 'get_methodologies',
  summary: 'The methodology versions in force, explained',
  method: 'GET',
  path: '/methodology',
  family: 'control',
  access: 'public',
  kind: 'exchange',
  input: z.strictObject({}),
  output: z.strictObject({ methodologies: z.array(methodology) }),
  run: async (_input, call) => ({
    methodologies: (await inForce(call)).flatMap((version) => {
      const parts = explain(version)
      return parts ? [{ methodology_version: version, in_force: true, parts }] : []
    }),
  }),
})

export const getMethodology = defineExchange({
  name: 'get_methodology',
  summary: 'What one methodology_version names, part by part',
  description:
    'The version as a result has it, percent-encoded: `%2B` for a plus sign, `%20` for a space. Versions of earlier results ' +
    'are explained too, if all their parts are known here.',
  method: 'GET',
  path: '/methodology/{version}',
  family: 'control',
  access: 'public',
  kind: 'exchange',
  errors: ['not_found'],
  input: z.strictObject({ version: z.string().describe('A methodology_version.') }),
  output: methodology,
  run: async ({ version }, call) => {
    const parts = explain(version)
    if (!parts) throw new AppError('not_found', 'This methodology_version is not known here.')
    return { methodology_version: version, in_force: (await inForce(call)).includes(version), parts }
  },
})

async function inForce({ api }: Call): Promise<string[]> {
  const reported = await api.assessors.methodologies().catch(() => [])
  return [...new Set([...reported, ...configuredMethodologies(api.config)])]
}

/** The explanation of each part; null unless every part is known and in its place. */
export function explain(version: string): { part: string; meaning: string }[] | null {
  const [observation = '', assessment = '', ...more] = version.split(' ')
  if (more.length > 0 || version.length > MAX_CHARS) return null
  const [procedure = ''] = assessment.split('+')
  const named = [
    ...meanings(observation.split('+'), OBSERVATION),
    ...meanings(assessment.split('+'), placesOf(procedure)),
  ]
  return named.every((entry): entry is NonNullable<typeof entry> => entry !== null) ? named : null
}

function placesOf(procedure: string) {
  if (procedure.startsWith('semantic-')) return SEMANTIC
  return procedure.startsWith('local-') ? LOCAL : LITERAL
}

const MAX_CHARS = 256

/** One entry per place; null if a part is unknown, missing or surplus. */
function meanings(parts: readonly string[], places: readonly (readonly Place[])[]) {
  if (parts.length !== places.length) return [null]
  return parts.map((part, i) => {
    const known = places[i]?.find(({ form }) => form.test(part))
    return known ? { part, meaning: known.meaning } : null
  })
}
