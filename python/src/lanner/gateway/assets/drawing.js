// The drawing area: pointer and keyboard draw with the same pen. What is drawn leaves it as a PNG file.

const GRID = 28; // The keyboard moves by one of so many steps from edge to edge.
const PEN = 1 / 12; // The pen's width, of the area's.

export class Drawing {
  /** Draws on `canvas`; `cursor` shows the keyboard's pen, `pen` says where it is. */
  constructor(canvas, cursor, pen) {
    this.canvas = canvas;
    this.cursor = cursor;
    this.pen = pen;
    this.context = canvas.getContext("2d");
    this.at = [GRID / 2, GRID / 2];
    this.down = false;
    this.light = false;
    this.strokes = [];
    canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    canvas.addEventListener("pointermove", (event) => this.#extend(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (this.pointed = null));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    this.clear();
  }

  /** Whether nothing is drawn. */
  get empty() {
    return this.strokes.length === 0;
  }

  /** Takes light ink on dark paper, or dark ink on light paper; what is drawn stays. */
  useLightInk(light) {
    this.light = light;
    this.#paint();
  }

  /** Removes everything. */
  clear() {
    this.strokes = [];
    this.down = false;
    this.#paint();
    this.#tell();
  }

  /** The drawing as a PNG file. */
  file() {
    return new Promise((resolve) => this.canvas.toBlob(resolve, "image/png"));
  }

  #begin(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointed = this.#stroke(this.#place(event));
  }

  #extend(event) {
    if (!this.pointed) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) this.pointed.push(this.#place(each));
    this.#paint();
  }

  #key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in moves) {
      this.at = this.at.map((side, axis) => Math.min(GRID - 1, Math.max(1, side + moves[event.key][axis])));
      if (this.down) this.strokes.at(-1).push(this.at.map((side) => side / GRID));
    } else if (event.key === " ") {
      this.down = !this.down;
      if (this.down) this.#stroke(this.at.map((side) => side / GRID));
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
    this.#paint();
    this.#tell();
  }

  #stroke(place) {
    this.strokes.push([place]);
    this.#paint();
    return this.strokes.at(-1);
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  #paint() {
    const { context, canvas } = this;
    const side = canvas.width;
    const [paper, ink] = this.light ? ["#000000", "#ffffff"] : ["#ffffff", "#000000"];
    context.fillStyle = paper;
    context.fillRect(0, 0, side, side);
    context.strokeStyle = ink;
    context.lineWidth = PEN * side;
    context.lineCap = context.lineJoin = "round";
    for (const [first, ...others] of this.strokes) {
      context.beginPath();
      context.moveTo(first[0] * side, first[1] * side);
      // A stroke of one place is a dot.
      for (const [x, y] of others.length ? others : [first]) context.lineTo(x * side, y * side);
      context.stroke();
    }
  }

  #tell() {
    const [x, y] = this.at;
    this.cursor.style.left = `${(100 * x) / GRID}%`;
    this.cursor.style.top = `${(100 * y) / GRID}%`;
    this.cursor.classList.toggle("down", this.down);
    this.pen.textContent = `Pen ${this.down ? "down" : "up"}, column ${x} of ${GRID}, row ${y} of ${GRID}.`;
  }
}
