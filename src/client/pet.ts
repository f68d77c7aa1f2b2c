export type PetStatus = 'available' | 'pending' | 'sold'

/** An animal of the catalogue. Its integers are 64 bits wide, and exact. */
export interface Pet {
  readonly id: bigint
  readonly name: string
  readonly categoryId: bigint
  /** Absent where the animal was added without one. */
  readonly status?: PetStatus
}

/** An animal to be added; the service gives it its id. */
export interface NewPet {
  readonly name: string
  /** A number has to be a safe integer. */
  readonly categoryId: bigint | number
  readonly status?: PetStatus | undefined
}
