// Ids of requests: UUIDs of version 7 (RFC 9562), which begin with the time. Requests of the same time are neighbours in
// every index of ids, so a purchase writes few database pages, and pruning reads few, however many requests there are.
import { randomBytes } from 'node:crypto'

/** 74 of its bits are random. An id alone gives no access: a result needs its recovery token. */
export function makeRequestId(now = Date.now()): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(now, 0, 6)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
