// The little of d3 that the charts use. The packages have no types of their own, and `npm run check` does without them.

declare module 'd3-scale' {
  interface Scale {
    (value: number): number
    ticks(count?: number): number[]
  }
  interface BandScale {
    (name: string): number | undefined
    bandwidth(): number
  }
  interface Settable<S> {
    domain(domain: readonly number[]): Settable<S> & S
    range(range: readonly number[]): Settable<S> & S
    nice(): Settable<S> & S
  }
  interface SettableBand {
    domain(domain: readonly string[]): SettableBand & BandScale
    range(range: readonly number[]): SettableBand & BandScale
    padding(share: number): SettableBand & BandScale
  }
  export function scaleLinear(): Settable<Scale> & Scale
  export function scaleLog(): Settable<Scale> & Scale
  export function scaleBand(): SettableBand & BandScale
}

declare module 'd3-shape' {
  interface Line<T> {
    (points: readonly T[]): string | null
    x(of: (point: T) => number): Line<T>
    y(of: (point: T) => number): Line<T>
  }
  export function line<T>(): Line<T>
}
