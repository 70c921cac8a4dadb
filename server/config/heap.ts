// The variable of the heap. The start commands of package.json, Dockerfile and compose.yaml read it, because the size of
// the heap is set when a process starts.
import { whole } from './numbers.ts'

export const heapVariables = {
  HEAP_MB: {
    schema: whole(64, 65_536),
    default: '192',
    about: 'Megabytes of the old generation in the start commands; a process needs twice this and 128 MB',
  },
} as const
