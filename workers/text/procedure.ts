// The name of the way from bytes to text, a part of every `methodology_version`. The web process reads it too, so
// nothing that parses is imported here.

/**
 * With the versions that can change its result. Same bytes, same content type, same name: same text. A change of a rule
 * of normalization counts the first number up.
 */
export const TEXT_PROCEDURE = 'text-4+parse5-8.1.1+bytes-1.16.0'
