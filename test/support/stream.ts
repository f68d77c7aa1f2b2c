/** A body in chunks: texts, or counts of spaces. After the last one it ends, stalls or fails. */
export function createStream(
  chunks: readonly (string | number)[],
  end: 'ends' | 'stalls' | 'fails' = 'ends',
): ReadableStream {
  const left = [...chunks]
  return new ReadableStream({
    async pull(controller) {
      const chunk = left.shift()
      if (chunk !== undefined) controller.enqueue(Buffer.from(typeof chunk === 'string' ? chunk : ' '.repeat(chunk)))
      else if (end === 'ends') controller.close()
      else if (end === 'fails') controller.error(new Error('The client closed the connection'))
      else await new Promise(() => {})
    },
  })
}
