/** `1 animal`, `1,000 animals` */
export function animals(count: number | bigint): string {
  return `${count.toLocaleString('en')} ${BigInt(count) === 1n ? 'animal' : 'animals'}`
}
