// The bound of a cache that counts its entries.

/**
 * Options of an LRUCache that holds so many entries. lru-cache's own `max` takes the room for all of them when the cache is made,
 * which for the caches of one process is 10 ms of its start and some megabytes. Counted as sizes of one, the room grows with what
 * the cache holds.
 */
export function atMost(entries: number) {
  return { maxSize: entries, sizeCalculation: () => 1 }
}
