// The weights of the local verifier, so that anyone can recompute its verdicts: the list at /model/, and the files, named by
// the digest of the weights.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { procedureOf } from '../../workers/assessment/local/settings.ts'
import { readTables, settings, weightParts, weightsLength } from '../../workers/assessment/local/weights.ts'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { inTurns } from './download-turns.ts'
import { SharedFiles } from './shared-files.ts'

/** The content of a name never changes. */
const FOR_EVER = 'public, max-age=31536000, immutable'
const NAME = settings.weights_sha256

export function mountModel(app: FastifyInstance, api: Api) {
  const weights = new SharedFiles(weightParts())
  app.addHook('onClose', () => weights[Symbol.asyncDispose]())
  const route = {
    config: { operation: 'model' },
    onRequest: (request: FastifyRequest) => api.limits.spend(request.ip),
  }
  app.get('/model/', route, async (_request, reply) => reply.header('cache-control', 'no-cache').send(describe(api)))
  app.route<FileRoute>({
    ...route,
    // By itself the framework would read the whole file to answer HEAD.
    method: ['GET', 'HEAD'],
    url: '/model/:name',
    handler: async (request, reply) => {
      const { name } = request.params
      if (name !== `${NAME}.onnx` && name !== `${NAME}.json`)
        throw new AppError('not_found', 'These are not the weights in force. The list is at /model/.')
      reply.headers({ 'cache-control': FOR_EVER, etag: `"${name}"`, 'x-content-type-options': 'nosniff' })
      if (isKnown(request.headers['if-none-match'], name)) return reply.code(304).send()
      return name.endsWith('.json')
        ? reply.type('application/json; charset=utf-8').send(request.method === 'HEAD' ? undefined : readTables())
        : sendWeights(weights, request, reply)
    },
  })
}

type FileRoute = { Params: { name: string } }

function describe({ baseUrl }: Api) {
  return {
    weights_sha256: NAME,
    bytes: weightsLength(),
    methodology: procedureOf(settings),
    files: [
      { url: `${baseUrl}/model/${NAME}.onnx`, bytes: weightsLength(), sha256: NAME, holds: 'the weights, in ONNX' },
      { url: `${baseUrl}/model/${NAME}.json`, holds: 'tokenizer and settings' },
    ],
  }
}

function sendWeights(weights: SharedFiles, { method }: FastifyRequest, reply: FastifyReply) {
  reply.type('application/octet-stream').header('content-length', weightsLength()).header('accept-ranges', 'none')
  return reply.send(method === 'HEAD' ? undefined : Readable.from(inTurns(weights.read()), { objectMode: false }))
}

function isKnown(header: string | undefined, name: string): boolean {
  return header?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === `"${name}"`) ?? false
}
