// Splits a model into its graph and its weights, so that the runtime reads the weights where they lie and holds no second
// copy: 350 MB in place of 466. Each tensor's bytes in the graph are replaced by a reference to the same bytes in the
// model's own file, as ONNX defines for external data. The format is Protocol Buffers; these few fields of it are read:
//
//   ModelProto.graph = 7    GraphProto.initializer = 5
//   TensorProto.raw_data = 9   .external_data = 13 (key = 1, value = 2)   .data_location = 14 (EXTERNAL = 1)

const MODEL_GRAPH = 7
const GRAPH_INITIALIZER = 5
const TENSOR_RAW_DATA = 9
const TENSOR_EXTERNAL_DATA = 13
const TENSOR_DATA_LOCATION = 14
/** Bytes from which on a tensor moves out. Smaller ones are shapes and constants, which the runtime reads while it loads. */
const LEAST_MOVED = 1024

/**
 * The graph of a model without its large tensors, which it names as external data of the file `location`: the model's own
 * bytes. Throws RangeError if the bytes are no Protocol Buffers message.
 */
export function graphOf(model: Uint8Array, location: string): Uint8Array<ArrayBuffer> {
  return mapField(model, 0, model.length, MODEL_GRAPH, (from, to) =>
    mapField(model, from, to, GRAPH_INITIALIZER, (start, end) => externalTensor(model, start, end, location)),
  )
}

function externalTensor(bytes: Uint8Array, from: number, to: number, location: string): Uint8Array {
  const fields = [...fieldsOf(bytes, from, to)]
  const data = fields.find(({ number }) => number === TENSOR_RAW_DATA)
  const length = data ? data.end - data.from : 0
  if (!data || length < LEAST_MOVED) return bytes.subarray(from, to)
  const kept = fields.filter(({ number }) => number !== TENSOR_RAW_DATA && number !== TENSOR_DATA_LOCATION)
  const place = { location, offset: String(data.from), length: String(length) }
  return joined([
    ...kept.map(({ start, end }) => bytes.subarray(start, end)),
    ...Object.entries(place).map(([key, value]) =>
      message(TENSOR_EXTERNAL_DATA, joined([message(1, encoded(key)), message(2, encoded(value))])),
    ),
    Uint8Array.of(TENSOR_DATA_LOCATION << 3, 1),
  ])
}

/** A message with each field of this number replaced by what `change` makes of its content; other fields stay. */
function mapField(
  bytes: Uint8Array,
  from: number,
  to: number,
  number: number,
  change: (from: number, to: number) => Uint8Array,
): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = []
  for (const field of fieldsOf(bytes, from, to))
    parts.push(
      field.number === number ? message(number, change(field.from, field.end)) : bytes.subarray(field.start, field.end),
    )
  return joined(parts)
}

interface Field {
  number: number
  /** Where its tag begins, where its content begins, and where it ends. */
  start: number
  from: number
  end: number
}

function* fieldsOf(bytes: Uint8Array, from: number, to: number): Generator<Field> {
  for (let at = from; at < to; ) {
    const start = at
    const [tag, afterTag] = readVarint(bytes, at, to)
    const [content, end] = contentOf(bytes, tag & 7, afterTag, to)
    if (end > to) throw new RangeError('a field is longer than its message')
    yield { number: Math.floor(tag / 8), start, from: content, end }
    at = end
  }
}

function contentOf(bytes: Uint8Array, wireType: number, at: number, to: number): [from: number, end: number] {
  if (wireType === 0) return [at, readVarint(bytes, at, to)[1]]
  if (wireType === 1) return [at, at + 8]
  if (wireType === 5) return [at, at + 4]
  if (wireType !== 2) throw new RangeError('an unknown type of field')
  const [length, from] = readVarint(bytes, at, to)
  return [from, from + length]
}

function readVarint(bytes: Uint8Array, at: number, to: number): [value: number, next: number] {
  let value = 0
  let factor = 1
  for (let next = at; next < to; next++) {
    const byte = bytes[next] ?? 0
    value += (byte & 127) * factor
    if (byte < 128) return [value, next + 1]
    factor *= 128
  }
  throw new RangeError('a number has no end')
}

function message(number: number, content: Uint8Array): Uint8Array {
  return joined([varint(number * 8 + 2), varint(content.length), content])
}

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Uint8Array.from([...bytes, rest])
}

const encoded = (text: string) => new TextEncoder().encode(text)

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
