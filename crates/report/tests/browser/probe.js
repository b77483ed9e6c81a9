// Waits until the framed page has drawn its charts, tries its second figure, and writes what it found in base 64.
const frame = document.getElementById("frame");
const write = (found) => {
  const bytes = new TextEncoder().encode(JSON.stringify(found));
  document.getElementById("found").textContent = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
};
/** How many colours of series a chart has. */
const series = (chart, colours) => new Set([...chart.querySelectorAll("svg path")].map((path) => path.getAttribute("fill")).filter((fill) => colours.has(fill))).size;

async function look() {
  const page = frame.contentDocument, inside = frame.contentWindow;
  const done = () => { const [drawn, all] = (page.documentElement.dataset.charts ?? "0 of 1").split(" of "); return drawn === all; };
  for (let tries = 0; tries < 100 && !done(); tries++) await new Promise((after) => setTimeout(after, 50));
  const style = inside.getComputedStyle(page.documentElement);
  const colours = new Set(Array.from({ length: 8 }, (_, index) => style.getPropertyValue(`--series-${index}`).trim()));
  const charts = [...page.querySelectorAll(".chart")];
  const figure = page.querySelectorAll("section.figure")[1];
  const chart = figure.querySelector(".chart");
  chart.focus();
  chart.dispatchEvent(new inside.KeyboardEvent("keydown", { key: "End", bubbles: true }));
  await new Promise((after) => setTimeout(after, 100));
  const tip = figure.querySelector(".tip")?.textContent ?? "";
  const before = series(chart, colours);
  const shapes = charts.map((one) => one.querySelectorAll("svg path").length);
  figure.querySelectorAll(".legend button")[1].click();
  const blobs = [];
  inside.URL.createObjectURL = (blob) => { blobs.push(blob); return "#"; };
  inside.HTMLAnchorElement.prototype.click = () => {};
  figure.querySelector(".download").click();
  write({
    charts: page.documentElement.dataset.charts ?? "none",
    shapes,
    content: page.documentElement.scrollWidth,
    frame: page.documentElement.clientWidth,
    reading: figure.querySelector(".reading").textContent,
    tip,
    series: [before, series(chart, colours)],
    csv: await blobs[0].text(),
    owned: window.owned !== undefined,
  });
}

frame.addEventListener("load", () => look().catch((error) => write({ error: String(error) })), { once: true });
