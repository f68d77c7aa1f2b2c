/** A file of ours that a browser or a tool asks for: the same for everybody, as long as this version runs. */
export interface Asset {
  readonly type: string
  read(): Promise<Uint8Array>
  /** What else its answer says, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>
}
