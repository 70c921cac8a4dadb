// A DNS server over UDP. A test decides the answer to each question, so the records of a name may change between questions.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { ipv6Groups } from '../../server/outbound/addresses.ts'

export interface Records {
  A?: readonly string[]
  AAAA?: readonly string[]
  /** The requested name is an alias of this name, which has the addresses. */
  cname?: string
  /** DNS response code, e.g. 2 for SERVFAIL. */
  rcode?: number
  /** No answer at all. */
  silent?: boolean
}

/** Records by name; a function gets how often this record was asked for before. Other names do not exist. */
export type Zone = Record<string, Records | ((askedBefore: number) => Records)>

export interface NameServer extends AsyncDisposable {
  /** "address:port" */
  readonly address: string
  /** "name A" or "name AAAA", in the order asked. */
  readonly questions: string[]
  zone: Zone
}

const NXDOMAIN = 3
const TYPES: Record<number, 'A' | 'AAAA'> = { 1: 'A', 28: 'AAAA' }

export async function openNameServer(zone: Zone, at = { host: '127.0.0.1', port: 0 }): Promise<NameServer> {
  const socket = createSocket('udp4')
  const questions: string[] = []
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query)
    const asked = `${name} ${TYPES[type] ?? type}`
    const before = questions.filter((question) => question === asked).length
    questions.push(asked)
    const entry = opened.zone[name] ?? { rcode: NXDOMAIN }
    const records = typeof entry === 'function' ? entry(before) : entry
    if (!records.silent) socket.send(answer(query.subarray(0, end), type, records), from.port, from.address)
  })
  socket.bind(at.port, at.host)
  await once(socket, 'listening')
  const opened: NameServer = {
    address: `${at.host}:${socket.address().port}`,
    questions,
    zone,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((closed) => socket.close(() => closed()))
    },
  }
  return opened
}

function readQuestion(query: Buffer) {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function answer(question: Buffer, type: number, records: Records): Buffer {
  const addresses = records[TYPES[type] ?? 'A'] ?? []
  const alias = records.cname ? [record(0xc00c, 5, encodeName(records.cname))] : []
  // Offset of the alias' target: after the question and the 12 octets that begin a record.
  const owner = records.cname ? 0xc000 | (question.length + 12) : 0xc00c
  const head = Buffer.from(question)
  head.writeUInt16BE(0x8180 | (records.rcode ?? 0), 2)
  head.writeUInt16BE(addresses.length + alias.length, 6)
  head.writeUInt32BE(0, 8)
  return Buffer.concat([head, ...alias, ...addresses.map((address) => record(owner, type, encodeAddress(address)))])
}

/** Every record has a TTL of 0, as an attacker would set it. */
function record(owner: number, type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(owner, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)]))
  return Buffer.concat([...labels, Buffer.of(0)])
}

function encodeAddress(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  return Buffer.from(ipv6Groups(address).flatMap((group) => [group >> 8, group & 255]))
}
