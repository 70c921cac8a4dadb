// The bytes that a check is about, as text that a reader can hash or verify with other tools.
import { decodeBase64, sha256Hex } from '../../bytes.ts'
import { canonicalJson } from '../../json.ts'

export interface Bytes {
  label: string
  text: string
}

type Json = Record<string, unknown>

/** Empty for checks that are not about bytes, and for values that are too broken to have them. */
export function bytesBehind(name: string, value: unknown): Bytes[] {
  try {
    return READERS[name]?.(value as Json) ?? []
  } catch {
    return []
  }
}

const READERS: Record<string, (value: Json) => Bytes[]> = {
  signature: (value) => [
    { label: 'Signed text (canonical JSON)', text: signedText(value) },
    { label: 'Signature (Ed25519, hex)', text: String(attestationIn(value).sig_ed25519_hex) },
    { label: 'Public key named by the receipt (hex)', text: String(attestationIn(value).pubkey_hex) },
  ],
  trusted_key: (value) => [
    { label: 'Key named by the receipt', text: `${attestationIn(value).key_id}:${attestationIn(value).pubkey_hex}` },
  ],
  receipt_hash: (value) => digests(String(attestationIn(value).receipt_hash), signedText(value)),
  attested_time: (value) => [
    { label: 'ts_utc', text: String(attestationIn(value).ts_utc) },
    { label: 'ts_ms', text: String(attestationIn(value).ts_ms) },
  ],
  subject_sha256: (value) => {
    const encoded = String(receiptIn(value).canonical_envelope_base64)
    const envelope = new TextDecoder().decode(decodeBase64(encoded) ?? new Uint8Array())
    return digests(String(attestationIn(value).subject_sha256), envelope)
  },
  result_sha256: ({ receipt, ...result }) =>
    digests(String(((receipt as Json).envelope as Json).result_sha256), canonicalJson(result)),
  canonical_envelope: (value) => [
    { label: 'Envelope as written (canonical JSON)', text: canonicalJson(receiptIn(value).envelope) },
  ],
  text_sha256: ({ source }) => {
    const { text_sha256, normalized_text } = source as { text_sha256: string; normalized_text: string }
    return digests(text_sha256, normalized_text)
  },
  evidence_quotes: ({ evidence }) =>
    (evidence as { evidence_id: string; start: number; end: number; quote: string }[]).map((item) => ({
      label: `${item.evidence_id}, code points ${item.start} to ${item.end}`,
      text: item.quote,
    })),
  inclusion: ({ inclusion }) => [{ label: 'Proof (RFC 9162)', text: JSON.stringify(inclusion, null, 1) }],
  checkpoint: ({ checkpoint }) =>
    typeof checkpoint === 'string' ? [{ label: 'Checkpoint (signed note)', text: checkpoint }] : [],
  lease: (value) => {
    const bytes = decodeBase64(String(value.canonical_lease_base64))
    return [
      { label: 'Signed text (canonical JSON)', text: new TextDecoder().decode(bytes ?? new Uint8Array()) },
      { label: 'Signature (Ed25519, hex)', text: String(value.sig_ed25519_hex) },
    ]
  },
  alert_subject: ({ receipt: _receipt, ...subject }) => [
    { label: 'SHA-256 of the alert without its receipt', text: sha256Hex(canonicalJson(subject)) },
    { label: 'Hashed text (canonical JSON)', text: canonicalJson(subject) },
  ],
}

function digests(stated: string, text: string): Bytes[] {
  const found = sha256Hex(text)
  return [
    { label: 'SHA-256 as stated', text: stated },
    ...(found === stated ? [] : [{ label: 'SHA-256 as computed', text: found }]),
    { label: 'Hashed text', text },
  ]
}

/** The attestation of a result, a receipt, an alert, or the value itself. */
export function attestationIn(value: unknown): Json {
  const { receipt, attestation } = value as { receipt?: { attestation?: Json }; attestation?: Json }
  return receipt?.attestation ?? attestation ?? (value as Json)
}

/** Of a result, or the receipt of a purchase itself. */
function receiptIn(value: Json): Json {
  return (value.receipt ?? value) as Json
}

function signedText(value: Json): string {
  const { receipt_hash: _hash, sig_ed25519_hex: _signature, ...signed } = attestationIn(value)
  return canonicalJson(signed)
}
