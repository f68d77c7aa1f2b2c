import { type ClientOptions, readOptions } from './options.ts'
import { Pets } from './pets.ts'

/** A pet store, spoken to with one API key. Nothing is sent before an operation is called. */
export class PetstoreClient {
  readonly pets: Pets

  /** Throws a TypeError for options that it cannot use. */
  constructor(options: ClientOptions) {
    this.pets = new Pets(readOptions(options))
  }
}
