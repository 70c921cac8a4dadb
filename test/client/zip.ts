// Writes ZIP archives of stored files (APPNOTE 4.3), for the packages that tests make.
import { crc32 } from 'node:zlib'

/** `method` is what the archive says of each file; the bytes are stored in any case. */
export function zipOf(files: ReadonlyMap<string, Buffer>, method = 0): Buffer {
  const parts: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const [name, bytes] of files) {
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(0x800, 2)
    common.writeUInt16LE(method, 4)
    common.writeUInt16LE(0x21, 8)
    common.writeUInt32LE(crc32(bytes), 10)
    common.writeUInt32LE(bytes.length, 14)
    common.writeUInt32LE(bytes.length, 18)
    common.writeUInt16LE(name.length, 22)
    const at = Buffer.alloc(14)
    at.writeUInt32LE(offset, 10)
    parts.push(Buffer.from('PK\x03\x04'), common, Buffer.from(name), bytes)
    central.push(Buffer.from('PK\x01\x02\x14\0'), common, at, Buffer.from(name))
    offset += 30 + name.length + bytes.length
  }
  const directory = Buffer.concat(central)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.size, 4)
  end.writeUInt16LE(files.size, 6)
  end.writeUInt32LE(directory.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...parts, directory, Buffer.from('PK\x05\x06'), end])
}
