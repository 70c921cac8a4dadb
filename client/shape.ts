// Shapes of JSON data, as far as the checks need them.

/** The fault of a value, or null. `path` is the JSON Pointer at the start of the message. */
export type Shape = (value: unknown, path: string) => string | null

export const anything: Shape = () => null

export function literal(...allowed: readonly (string | number | boolean | null)[]): Shape {
  return (value, path) =>
    allowed.some((one) => one === value)
      ? null
      : `${path} is not ${allowed.map((one) => JSON.stringify(one)).join(' or ')}`
}

export function text(pattern = /^/): Shape {
  return (value, path) =>
    typeof value === 'string' && pattern.test(value) ? null : `${path} is not a string of the right form`
}

export function integer(min: number): Shape {
  return (value, path) =>
    Number.isSafeInteger(value) && (value as number) >= min ? null : `${path} is not an integer of at least ${min}`
}

export function list(item: Shape, max: number, min = 0): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path || 'the value'} is not an array`
    if (value.length < min || value.length > max) return `${path || 'the value'} has ${value.length} items`
    return first(value.entries(), ([index, member]) => item(member, `${path}/${index}`))
  }
}

/** An object with at least these members. */
export function object(members: Readonly<Record<string, Shape>>): Shape {
  return (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return `${path || 'the value'} is not an object`
    return first(Object.entries(members), ([name, shape]) =>
      Object.hasOwn(value, name)
        ? shape((value as Record<string, unknown>)[name], `${path}/${name}`)
        : `${path}/${name} is missing`,
    )
  }
}

/** An object with exactly these members: for data that no digest covers as a whole. */
export function closed(members: Readonly<Record<string, Shape>>): Shape {
  const required = object(members)
  return (value, path) => {
    const fault = required(value, path)
    if (fault) return fault
    const extra = Object.keys(value as object).find((name) => !Object.hasOwn(members, name))
    return extra === undefined ? null : `${path}/${extra} does not belong there`
  }
}

export function either(...shapes: readonly Shape[]): Shape {
  return (value, path) => {
    const faults = shapes.map((shape) => shape(value, path))
    return faults.includes(null) ? null : (faults[0] ?? null)
  }
}

function first<T>(items: Iterable<T>, fault: (item: T) => string | null): string | null {
  for (const item of items) {
    const found = fault(item)
    if (found) return found
  }
  return null
}
