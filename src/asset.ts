/** A file of ours that a browser or a tool asks for: the same for everybody, as long as this version runs. */
export interface Asset {
  readonly type: string
  /** Asked for when somebody first wants it: a start does not wait for what perhaps nobody looks at. */
  read(): Promise<Uint8Array>
  /** What else its answer says, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>
}
