/** A picture that can be read on white and on black: it follows the reader's choice. */
export function picture(width: number, height: number, label: string, inside: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(label)}">`,
    `<style>${style}</style>`,
    `<rect class="paper" width="${width}" height="${height}"/>`,
    ...inside,
    '</svg>',
    '',
  ].join('\n')
}

const style = `
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .paper { fill: #ffffff }
  .title { font-weight: 600; font-size: 15px }
  .quiet { fill: #59636e; font-size: 12px }
  .ours { fill: #0969da }
  .ceiling { fill: #b7bdc5 }
  .other { fill: #7d8590 }
  .grid { stroke: #d1d9e0; stroke-width: 1; fill: none }
  .limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 5 4; fill: none }
  .spread { stroke: #1f2328; stroke-width: 1.2; fill: none }
  .line { stroke-width: 2.2; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .paper { fill: #0d1117 }
    .quiet { fill: #9198a1 }
    .ours { fill: #4493f8 }
    .ceiling { fill: #3d444d }
    .other { fill: #656c76 }
    .grid { stroke: #3d444d }
    .limit { stroke: #f85149 }
    .spread { stroke: #e6edf3 }
  }
`

export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${fixed(x)}" y="${fixed(y)}" ${attributes}>${escaped(content)}</text>`
}

export function rectangle(x: number, y: number, width: number, height: number, kind: string): string {
  return `<rect class="${kind}" x="${fixed(x)}" y="${fixed(y)}" width="${fixed(Math.max(width, 1))}" height="${fixed(height)}"/>`
}

export function path(d: string, kind: string, attributes = ''): string {
  return `<path class="${kind}" d="${d}" ${attributes}/>`
}

/** A tenth of a pixel is fine enough, and keeps the files small. */
export function fixed(value: number): string {
  return String(Math.round(value * 10) / 10)
}

function escaped(content: string): string {
  return content.replace(/[&<>"]/g, character => `&#${character.charCodeAt(0)};`)
}
