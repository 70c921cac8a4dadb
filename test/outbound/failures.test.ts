// How errors of connections are classified. connection.test.ts and the tests of retrieval cover the rest with real servers.
import t from 'tap'
import { errors } from 'undici'
import { AppError } from '../../server/errors.ts'
import { outboundFailure } from '../../server/outbound/failures.ts'

const system = (code: string) => Object.assign(new Error(`connect ${code} 10.1.2.3:443`), { code })
const several = (...codes: string[]) => Object.assign(new AggregateError(codes.map(system)), { code: codes[0] })

t.test('errors of the network and of the peer', async (t) => {
  const rows: [Error, code: string][] = [
    [system('ECONNREFUSED'), 'source_unreachable'],
    [system('ENETUNREACH'), 'source_unreachable'],
    [system('EPERM'), 'source_unreachable'],
    [system('ETIMEDOUT'), 'source_timeout'],
    [several('ETIMEDOUT', 'ECONNREFUSED'), 'source_unreachable'],
    [several('ETIMEDOUT', 'ETIMEDOUT'), 'source_timeout'],
    [several('ENETUNREACH', 'ETIMEDOUT'), 'source_unreachable'],
    [new errors.SocketError('other side closed'), 'source_unreachable'],
    [new errors.HTTPParserError('nonsense'), 'source_protocol_error'],
    [new errors.HeadersOverflowError(), 'source_headers_too_large'],
    [Object.assign(new Error('bad record'), { library: 'SSL routines', code: 'ERR_SSL_X' }), 'source_tls_invalid'],
  ]
  for (const [error, code] of rows) {
    const failure = outboundFailure(error, 'example.com')
    t.match(failure, { code, cause: error, message: /"example.com"/ })
    t.notMatch((failure as Error).message, /10\.1\.2\.3/, 'no address in the message')
  }
})

t.test('a fault of this service is returned as it is', async (t) => {
  const faults = [
    system('EMFILE'),
    system('ENOMEM'),
    several('EMFILE'),
    new TypeError('undefined is not'),
    'text',
    undefined,
  ]
  for (const fault of faults) t.equal(outboundFailure(fault, 'example.com'), fault)
  const known = new AppError('source_blocked', 'no')
  t.equal(outboundFailure(known, 'example.com'), known)
})
