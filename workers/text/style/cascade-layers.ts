// The order of cascade layers (`@layer`) of a page.

/** Layers by number, in the order in which they were first named. 0 means all rules outside layers. */
export interface Layers {
  /** The number of a layer inside of another, made if it is new. The path null is a layer without a name. */
  open(parent: number, path: readonly string[] | null): number
  /** For each number its place in the cascade: the higher one wins, unless declarations are important. */
  order(): number[]
}

export function buildLayers(): Layers {
  const root: Layer = { number: 0, children: new Map() }
  const layers = [root]
  const openOne = (parent: Layer, name: string | number) => {
    let found = parent.children.get(name)
    if (!found) {
      found = { number: layers.length, children: new Map() }
      parent.children.set(name, found)
      layers.push(found)
    }
    return found
  }
  return {
    open(parent, path) {
      // The numbers are those that this function returned, and 0.
      let layer = layers[parent]!
      for (const name of path ?? [layers.length]) layer = openOne(layer, name)
      return layer.number
    },
    order() {
      const places: number[] = []
      let next = 0
      // Rules directly in a layer win over the layers inside it.
      const visit = (layer: Layer) => {
        for (const child of layer.children.values()) visit(child)
        places[layer.number] = next++
      }
      visit(root)
      return places
    },
  }
}

interface Layer {
  number: number
  /** In order. A layer without a name has a number for one. */
  children: Map<string | number, Layer>
}
