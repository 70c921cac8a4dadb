// A time-stamp authority (RFC 3161) of the openssl command: its certificates, its replies, and tokens that no honest authority makes.
import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** For the option `skip` of a test: why there is no authority, or false. */
export const withoutOpenssl: string | false =
  spawnSync('openssl', ['version']).status === 0 ? false : 'no openssl on this machine'

const CA = 'basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign\n'
export const STAMPS = 'extendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature\n'

export interface IssueOptions {
  /** Extensions of its certificate, as openssl reads them. */
  extensions?: string
  /** For how long the certificate is valid; a negative number means that it has expired. */
  days?: number
  /** Name of the issuer; by default the root. */
  by?: string
}

/** Certificates in a folder: NAME.pem and NAME.key. The root is named `root`. */
export class Certificates implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'time-stamp-authority-'))

  constructor(subject = 'Test root') {
    this.#openssl(
      'req',
      '-x509',
      ...EC,
      '-keyout',
      'root.key',
      '-out',
      'root.pem',
      '-subj',
      `/CN=${subject}`,
      '-days',
      '30',
    )
    writeFileSync(this.path('root.srl'), '01\n')
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  get root(): string {
    return readFileSync(this.path('root.pem'), 'utf8')
  }

  /** With a new key, or with the one that the name has. @param name of the files */
  issue(name: string, { extensions = STAMPS, days = 30, by = 'root' }: IssueOptions = {}, key: readonly string[] = EC) {
    const its = existsSync(this.path(`${name}.key`)) ? ['-key', `${name}.key`] : [...key, '-keyout', `${name}.key`]
    this.#openssl('req', '-new', ...its, '-out', `${name}.csr`, '-subj', `/CN=Test ${name}`)
    writeFileSync(this.path(`${name}.ext`), extensions)
    const issuer = ['-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-CAcreateserial']
    const form = ['-days', String(days), '-extfile', `${name}.ext`, '-out', `${name}.pem`]
    this.#openssl('x509', '-req', '-in', `${name}.csr`, ...issuer, ...form)
  }

  /** Another authority that signs certificates. */
  issueIssuer(name: string, options: IssueOptions = {}) {
    this.issue(name, { extensions: CA, ...options })
  }

  /** The reply of the authority `name`. @param chain names of the certificates that come with its own */
  async reply(query: Buffer, name: string, chain: readonly string[] = []): Promise<Buffer> {
    const id = `${name}-${this.#made++}`
    // A file for each reply, with the last number of this authority: two processes of openssl cannot count in one file at a time.
    const last = this.#serials.get(name) ?? 0
    this.#serials.set(name, last + 1)
    writeFileSync(this.path(`${id}.serial`), `${last.toString(16).padStart(4, '0')}\n`)
    writeFileSync(this.path(`${id}.tsq`), query)
    writeFileSync(this.path(`${id}.chain`), chain.map((one) => readFileSync(this.path(`${one}.pem`), 'utf8')).join(''))
    const certs = chain.length > 0 ? `certs = ${id}.chain\n` : ''
    writeFileSync(
      this.path(`${id}.cnf`),
      `[tsa]\nserial = ${id}.serial\nsigner_cert = ${name}.pem\nsigner_key = ${name}.key\nsigner_digest = sha256\n${certs}` +
        'default_policy = 1.2.3.4.1\ndigests = sha256, sha512\ness_cert_id_alg = sha256\n',
    )
    const options = [
      '-reply',
      '-config',
      `${id}.cnf`,
      '-section',
      'tsa',
      '-queryfile',
      `${id}.tsq`,
      '-out',
      `${id}.tsr`,
    ]
    await run('openssl', ['ts', ...options], { cwd: this.folder })
    return readFileSync(this.path(`${id}.tsr`))
  }

  /** A query for the digest of these bytes, with a nonce of its own. */
  async query(data: string | Buffer, ...options: string[]): Promise<Buffer> {
    const digest = createHash('sha256').update(data).digest('hex')
    const call = ['ts', '-query', '-digest', digest, '-sha256', '-cert', ...options]
    return (await run('openssl', call, { encoding: 'buffer' })).stdout
  }

  /** The same statement as in a reply, signed by any certificate: openssl does not reply with one that is not for time stamps. */
  async forge(reply: Buffer, name: string, ...options: string[]): Promise<Buffer> {
    const id = `forged-${this.#made++}`
    writeFileSync(this.path(`${id}.tsr`), reply)
    const openssl = (...call: string[]) => run('openssl', call, { cwd: this.folder })
    await openssl('ts', '-reply', '-in', `${id}.tsr`, '-token_out', '-out', `${id}.token`)
    const verify = ['-verify', '-noverify', '-inform', 'DER', '-in', `${id}.token`]
    await openssl('cms', ...verify, '-out', `${id}.info`)
    const sign = ['-sign', '-binary', '-nodetach', '-econtent_type', '1.2.840.113549.1.9.16.1.4', '-in', `${id}.info`]
    const by = ['-signer', `${name}.pem`, '-inkey', `${name}.key`, '-outform', 'DER', '-out', `${id}.signed`]
    await openssl('cms', ...sign, ...by, ...(options.length > 0 ? options : ['-cades']))
    return response(readFileSync(this.path(`${id}.signed`)))
  }

  [Symbol.dispose]() {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #made = 0
  readonly #serials = new Map<string, number>()

  #openssl(...options: string[]) {
    const { status, stderr } = spawnSync('openssl', options, { cwd: this.folder })
    if (status !== 0) throw new Error(`openssl ${options.join(' ')}: ${stderr}`)
  }
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
export const RSA = ['-newkey', 'rsa:2048', '-nodes']

/** A reply of status 0 with this token. */
export function response(token: Buffer): Buffer {
  return sequence(Buffer.concat([sequence(Buffer.of(2, 1, 0)), token]))
}

function sequence(content: Buffer): Buffer {
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255]
  return Buffer.concat([Buffer.of(0x30, ...length), content])
}

/** How an authority answers a query. Null: not at all. */
export type Answer = { status?: number; body: Buffer | string } | null

export interface TestAuthority extends AsyncDisposable {
  url: string
  /** The queries so far. */
  asked: Buffer[]
  /** Replaces its next answers until it is set to null. */
  misbehave(how: ((query: Buffer) => Promise<Answer> | Answer) | null): void
  /** Resolves at the next query. */
  next(): Promise<void>
}

/** Serves the replies of the authority `name` over HTTP. */
export async function openAuthority(certificates: Certificates, name: string): Promise<TestAuthority> {
  const asked: Buffer[] = []
  let how: ((query: Buffer) => Promise<Answer> | Answer) | null = null
  let waiting = Promise.withResolvers<void>()
  const server = createServer(async (request, answer) => {
    const query = Buffer.concat(await request.toArray())
    asked.push(query)
    waiting.resolve()
    waiting = Promise.withResolvers()
    const made = how ? await how(query) : { body: await certificates.reply(query, name) }
    if (made === null) return
    answer.writeHead(made.status ?? 200, { 'content-type': 'application/timestamp-reply' }).end(made.body)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}`,
    asked,
    misbehave: (next) => {
      how = next
    },
    next: () => waiting.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
