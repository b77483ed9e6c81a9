// Takes the drawings of the page one after the other, and writes what it found of each in base 64.
const drawings = JSON.parse(document.getElementById("drawings").textContent);
const found = drawings.map((text) => {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const broken = parsed.querySelector("parsererror")?.textContent ?? "";
  const svg = document.body.appendChild(document.importNode(parsed.documentElement, true));
  const { x, y, width, height } = svg.viewBox.baseVal;
  const box = svg.getBBox();
  // How far the shapes and words reach over an edge, in its units.
  const over = Math.max(x - box.x, y - box.y, box.x + box.width - (x + width), box.y + box.height - (y + height));
  svg.remove();
  return { broken, over };
});
const bytes = new TextEncoder().encode(JSON.stringify(found));
document.getElementById("found").textContent = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
