// Operations on the journal: bytes that an account keeps in named slots.
import type { CallOptions, ConditionalCallOptions } from './call-options.ts'

export interface JournalSlot {
  slot: string
  bytes: number
  sha256: string
  updated_at: string
}

export interface JournalContent {
  /** The exact bytes. */
  data: Uint8Array
  /** For `ifMatch` and `ifNoneMatch`. */
  etag: string
}

export interface JournalOperations {
  /**
   * Stores at most 65,536 bytes. The service reads and encrypts nothing. With `ifNoneMatch: '*'` it only creates, with
   * `ifMatch` it replaces that state alone.
   */
  putJournalSlot(input: { slot: string; data: Uint8Array }, options?: ConditionalCallOptions): Promise<JournalSlot>
  /** Null if `ifNoneMatch` names the present state. */
  getJournalSlot(
    input: { slot: string },
    options: { ifNoneMatch: string } & CallOptions,
  ): Promise<JournalContent | null>
  getJournalSlot(input: { slot: string }, options?: CallOptions & { ifMatch?: string }): Promise<JournalContent>
  deleteJournalSlot(input: { slot: string }, options?: ConditionalCallOptions): Promise<void>
  listJournalSlots(input?: Record<never, never>, options?: CallOptions): Promise<{ slots: JournalSlot[] }>
}
