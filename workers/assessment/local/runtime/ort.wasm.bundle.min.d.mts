// The types of the runtime, from the package that its files come from.
export * from 'onnxruntime-web'
