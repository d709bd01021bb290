/** What goes wrong, in a sentence. `kind` is misuse, model, unsupported, peer, busy, transport, input, aborted or internal. */
export class LannerError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "LannerError";
    this.kind = kind;
  }
}
