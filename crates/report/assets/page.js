// Draws the charts of a report. What is drawn comes from the JSON in the page; text for people comes from its
// tables. Strings of a document enter the page as text alone (textContent, or text of the chart library), never as
// HTML.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  /** Below this width, in CSS pixels, bars lie so that their labels can be read. */
  const NARROW = 620;
  /** Colours, fills and symbols of series: with as many of each, no two of eight are alike in any. */
  const SERIES = 8;
  /** Width of a bar, at least, in CSS pixels. */
  const LEAST_BAR = 8;
  const STRIPE = { symbol: "rect", dashArrayX: [1, 0], symbolSize: 1 };
  const DECALS = [
    { symbol: "none" },
    { ...STRIPE, dashArrayY: [1.5, 5], rotation: -Math.PI / 4 },
    { symbol: "circle", dashArrayX: [[4, 4], [0, 4, 4, 0]], dashArrayY: [4, 0], symbolSize: 0.5 },
    { ...STRIPE, dashArrayY: [1, 4], rotation: 0 },
    { ...STRIPE, dashArrayY: [1.5, 5], rotation: Math.PI / 4 },
    { symbol: "rect", dashArrayX: [[4, 4], [0, 4, 4, 0]], dashArrayY: [4, 0], symbolSize: 1 },
    { ...STRIPE, dashArrayY: [1, 2], rotation: Math.PI / 2 },
    { symbol: "triangle", dashArrayX: [[6, 6], [0, 6, 6, 0]], dashArrayY: [6, 0], symbolSize: 0.8 },
  ];
  const PLUS = "path://M3 0 H6 V3 H9 V6 H6 V9 H3 V6 H0 V3 H3 Z";
  const SYMBOLS = ["circle", "rect", "triangle", "roundRect", PLUS, "emptyCircle", "emptyRect", "emptyTriangle"];
  const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [12, 4], [2, 2], [6, 2, 2, 2, 2, 2], [1, 4]];

  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("charts").textContent);
  const sections = [...document.querySelectorAll("section.figure")];
  let palette;

  function readPalette() {
    const style = getComputedStyle(root);
    const get = (name) => style.getPropertyValue(name).trim();
    palette = { ink: get("--ink"), soft: get("--soft"), rule: get("--rule"), card: get("--card") };
    palette.series = Array.from({ length: SERIES }, (_, index) => get(`--series-${index}`));
    palette.font = getComputedStyle(document.body).fontFamily;
  }

  function element(name, parent, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    if (parent) parent.append(made);
    return made;
  }

  /** A number as the axis shows it, short. */
  function short(value) {
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(1);
    for (const [unit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (size >= unit) return `${+(value / unit).toPrecision(4)} ${name}`;
    }
    return `${+value.toPrecision(4)}`;
  }

  class Chart {
    constructor(figure, section) {
      this.figure = figure;
      this.section = section;
      this.box = section.querySelector(".chart");
      this.reading = section.querySelector(".reading");
      this.hidden = new Set();
      this.paper = true;
      this.at = -1;
      this.layOut();
      this.chart = echarts.init(this.box, null, { renderer: "svg", ...this.size });
      this.redraw();
      this.box.addEventListener("keydown", (event) => this.key(event));
      // A bar or point leads to its run.
      this.chart.on("click", (hit) => {
        const row = this.figure.kind === "scatter" ? hit.data?.row : this.slots[hit.dataIndex];
        const run = this.figure.runs[row]?.[Number(hit.seriesId?.slice(1))];
        if (run) location.hash = run;
      });
      this.box.addEventListener("blur", () => this.chart.dispatchAction({ type: "hideTip" }));
    }

    /** A logarithmic axis has no zero: numbers stand on it as points. */
    get bars() { return (this.figure.kind === "bars" || this.figure.kind === "stacked") && !this.figure.log; }
    /** Whether rows stand side by side as points without lines. */
    get dots() { return (this.figure.kind === "bars" || this.figure.kind === "stacked") && this.figure.log; }
    get shown() { return this.figure.series.map((_, index) => index).filter((index) => !this.hidden.has(index) && !this.isAxis(index)); }
    /** Whether a series is the horizontal axis of a scatter. */
    isAxis(index) { return this.figure.kind === "scatter" && index === 0; }

    look(index) { return (this.figure.kind === "scatter" ? index - 1 : index) % SERIES; }
    /** Hatch, dash and symbol: of series beyond the eighth others than those of the same colour. */
    mark(index) {
      const at = this.figure.kind === "scatter" ? index - 1 : index;
      return (at + Math.floor(at / SERIES)) % SERIES;
    }

    /** Rows in the order they are drawn, `null` where a gap sets the means apart. */
    get slots() {
      const { labels, summaries, kind } = this.figure;
      const rows = labels.map((_, row) => row);
      if (kind === "scatter" || summaries.length === 0 || summaries.length === rows.length) return rows;
      const apart = rows.filter((row) => summaries.includes(row));
      return [...rows.filter((row) => !summaries.includes(row)), null, ...apart];
    }

    layOut() {
      const { kind, labels, series } = this.figure;
      const square = kind === "scatter";
      this.box.classList.toggle("square", square);
      // On paper the width is that of the sheet, which scripts are not told: A4 or letter less margins.
      const room = Math.round("paper" in root.dataset ? (square ? 480 : 680) : this.box.parentElement.clientWidth);
      this.lying = this.bars && room < NARROW && labels.length > 6;
      // Bars that would be too thin are scrolled.
      const needed = 60 + this.slots.length * 1.3 * LEAST_BAR * (kind === "stacked" ? 1 : series.length);
      const width = this.bars && !this.lying && !("paper" in root.dataset) ? Math.max(room, Math.ceil(needed)) : square ? Math.min(room, 620) : room;
      this.box.style.width = `${width}px`;
      const thick = kind === "stacked" ? 14 : LEAST_BAR * series.length;
      const height = this.lying ? 90 + this.slots.length * (thick + 8) : square ? Math.min(width, 620) : width < NARROW ? 340 : 420;
      this.box.style.height = `${height}px`;
      this.size = { width, height };
    }

    redraw() {
      this.layOut();
      this.chart.resize({ ...this.size, silent: true });
      this.chart.setOption(this.option(), { notMerge: true });
      this.drawLegend();
    }

    option() {
      const { kind } = this.figure;
      const axes = kind === "scatter" ? this.scatterAxes() : this.categoryAxes();
      return {
        animation: false,
        backgroundColor: "transparent",
        textStyle: { fontFamily: palette.font, color: palette.ink },
        grid: { left: 12, right: kind === "lines" || kind === "scatter" ? 28 : 14, top: 12, bottom: 8, outerBoundsMode: "same", outerBoundsContain: "all" },
        tooltip: {
          trigger: kind === "scatter" ? "item" : "axis",
          axisPointer: { type: this.bars ? "shadow" : "line", lineStyle: { color: palette.soft } },
          confine: true,
          transitionDuration: 0,
          backgroundColor: palette.card,
          borderColor: palette.rule,
          textStyle: { color: palette.ink, fontFamily: palette.font },
          formatter: (hit) => this.tip(Array.isArray(hit) ? this.slots[hit[0]?.dataIndex] : hit.data?.row),
        },
        ...axes,
        series: [...this.shown.map((index) => this.series(index)), this.lines()],
      };
    }

    valueAxis(name) {
      return {
        type: this.figure.log ? "log" : "value",
        // Bars are compared by their lengths and start from zero; lines by their heights.
        scale: this.figure.kind === "lines",
        name,
        nameTextStyle: { color: palette.soft, fontSize: 12 },
        axisLabel: { color: palette.soft, formatter: short, hideOverlap: true },
        axisLine: { show: true, lineStyle: { color: palette.rule } },
        splitLine: { lineStyle: { color: palette.rule } },
      };
    }

    categoryAxes() {
      const { labels, x, y, summaries, kind } = this.figure;
      const slots = this.slots;
      const many = !this.lying && slots.length * 70 > this.size.width;
      const rows = {
        type: "category",
        name: x,
        nameLocation: "middle",
        nameGap: 30,
        nameTextStyle: { color: palette.soft, fontSize: 12 },
        inverse: this.lying,
        boundaryGap: kind !== "lines",
        data: slots.map((row) => (row === null ? "" : { value: labels[row], textStyle: summaries.includes(row) ? { fontWeight: "bold" } : {} })),
        axisTick: { show: false },
        axisLine: { lineStyle: { color: palette.soft } },
        axisLabel: { color: palette.ink, interval: slots.length > 80 ? "auto" : 0, rotate: many ? 45 : 0, width: this.lying ? 124 : 150, overflow: "truncate", fontSize: 12 },
      };
      const numbers = { ...this.valueAxis(y), nameLocation: "end", nameTextStyle: { color: palette.soft, fontSize: 12, align: "left", padding: [0, 0, 0, this.lying ? 0 : -30] } };
      if (!this.lying) return { xAxis: rows, yAxis: numbers };
      return { xAxis: { ...numbers, nameLocation: "middle", nameGap: 8, nameTextStyle: { color: palette.soft } , position: "top" }, yAxis: { ...rows, name: "" } };
    }

    /** Both axes of a scatter: one scale, so that the diagonal is where both are equal. */
    scatterAxes() {
      const { values, log, series, stated } = this.figure;
      const ours = values.flatMap((row) => [row[0], ...this.shown.map((index) => row[index])]);
      const all = [...ours, ...stated.map((one) => one.value)].filter((value) => value !== null && (!log || value > 0));
      let low = Math.min(...all), high = Math.max(...all);
      if (log) {
        low = 10 ** Math.floor(Math.log10(low));
        high = 10 ** Math.ceil(Math.log10(high));
        if (low === high) high = low * 10;
      } else {
        const step = 10 ** Math.floor(Math.log10(Math.max(high - Math.min(low, 0), Number.MIN_VALUE))) / 2;
        low = Math.min(0, Math.floor(low / step) * step);
        high = Math.ceil((high * 1.0001) / step) * step;
        if (low === high) high = low + 1;
      }
      this.range = [low, high];
      const axis = (name) => ({ ...this.valueAxis(name), min: low, max: high, nameLocation: "middle", nameGap: 32 });
      return { xAxis: axis(this.figure.x || series[0]), yAxis: axis(this.figure.y) };
    }

    series(index) {
      const { kind, values } = this.figure;
      const look = this.mark(index);
      const color = palette.series[this.look(index)];
      const points = this.slots.map((row) => (row === null ? null : this.drawable(values[row][index])));
      const common = { id: `s${index}`, name: `s${index}`, emphasis: { disabled: true }, markPoint: this.stated(index) };
      if (this.dots) {
        return { ...common, type: "scatter", data: points, symbol: SYMBOLS[look], symbolSize: 10, itemStyle: { color } };
      }
      if (kind === "lines") {
        return {
          ...common, type: "line", data: points, symbol: SYMBOLS[look], symbolSize: 9, lineStyle: { width: 2.25, color, type: DASHES[look] },
          itemStyle: { color }, showAllSymbol: points.length < 60,
        };
      }
      if (kind === "scatter") {
        const data = values.map((row, at) => ({ value: [this.drawable(row[0]), this.drawable(row[index])], row: at }));
        return {
          ...common, type: "scatter", data: data.filter((point) => !point.value.includes(null)), symbol: SYMBOLS[look], symbolSize: 10,
          itemStyle: { color, opacity: 0.85, borderColor: palette.card, borderWidth: 1 },
        };
      }
      return {
        ...common, type: "bar", data: points, stack: kind === "stacked" ? "all" : undefined, barGap: "0%", barCategoryGap: kind === "stacked" ? "30%" : "22%",
        itemStyle: { color, borderColor: palette.card, borderWidth: kind === "stacked" ? 1 : 0.5, decal: { ...DECALS[look], color: palette.card, backgroundColor: "transparent" } },
        barMaxWidth: 60,
      };
    }

    /** A value that the axis has a place for. */
    drawable(value) { return value !== null && this.figure.log && value <= 0 ? null : value; }

    /** The paper's values of a series: diamonds, at the bar or point they belong to. */
    stated(index) {
      // A bar says by its place whose value it is; among lines and points the colour has to.
      const color = this.bars ? palette.card : palette.series[this.look(index)];
      return {
        symbol: "diamond", symbolSize: [10, 13], silent: this.figure.kind !== "scatter", data: this.statedPoints(index), label: { show: false },
        itemStyle: { color, borderColor: palette.ink, borderWidth: 1.75 },
      };
    }

    /** Where the paper's values of a series are; in a stack, where the part would end. */
    statedPoints(index) {
      if (!this.paper) return [];
      const { stated, kind, values } = this.figure;
      const under = kind === "stacked" ? this.shown.filter((other) => other < index) : [];
      const place = (one) => {
        if (kind === "scatter") return [this.drawable(values[one.row][0]), one.value];
        const below = under.reduce((sum, other) => sum + (values[one.row][other] ?? 0), 0);
        return this.place(this.slots.indexOf(one.row), below + one.value);
      };
      const points = stated.filter((one) => one.series === index && this.drawable(one.value) !== null);
      return points.map((one) => ({ coord: place(one), row: one.row })).filter((point) => !point.coord.includes(null));
    }

    place(slot, value) { return this.lying ? [value, slot] : [slot, value]; }

    /** What is drawn whichever series are shown: the reference, the diagonal. Its points are
     * not seen: they make the axis reach to the reference and to what the paper states. */
    lines() {
      const { reference, kind } = this.figure;
      const rule = { color: palette.ink, width: 1.25, type: [6, 4] };
      const data = [];
      const reach = this.shown.flatMap((index) => this.statedPoints(index)).map((point) => point.coord);
      if (reference !== null && this.drawable(reference) !== null) {
        data.push({ [this.lying ? "xAxis" : "yAxis"]: reference });
        if (kind !== "scatter") reach.push(this.place(0, reference));
      }
      if (kind === "scatter") data.push([{ coord: [this.range[0], this.range[0]] }, { coord: [this.range[1], this.range[1]] }]);
      return {
        id: "lines", name: "lines", type: "scatter", data: reach, symbolSize: 0, silent: true, tooltip: { show: false },
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: rule, data },
      };
    }

    /** The text of a cell of the figure's table, without what the paper states. */
    cell(row, index) {
      const cell = this.section.querySelector("table.numbers").tBodies[0].rows[row].cells[index + 1];
      return cell.firstChild.textContent.trim();
    }

    tip(row) {
      if (row === undefined || row === null || this.shown.length === 0) return "";
      const box = element("div", null, undefined, "tip");
      element("b", box, this.figure.labels[row]);
      const line = (swatch, name, text, className) => {
        const made = element("div", box, undefined, className);
        made.append(swatch);
        element("span", made, name);
        element("span", made, text);
      };
      const indexes = this.figure.kind === "scatter" ? [0, ...this.shown] : this.shown;
      for (const index of indexes) {
        line(this.isAxis(index) ? element("span") : this.swatch(index), this.figure.series[index], this.cell(row, index));
        for (const one of this.figure.stated) {
          if (this.paper && one.row === row && one.series === index) line(this.diamond(), "paper", one.text, "paper");
        }
      }
      return box;
    }

    /** Left and right, or up and down, read one row after another; Home, End and Escape as everywhere. */
    key(event) {
      const slots = this.slots;
      const rows = slots.map((row, slot) => [row, slot]).filter(([row]) => row !== null);
      const at = rows.findIndex(([, slot]) => slot === this.at);
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
      if (event.key === "Escape") this.chart.dispatchAction({ type: "hideTip" });
      if (to === undefined || rows.length === 0) return;
      event.preventDefault();
      const [row, slot] = rows[Math.min(Math.max(to, 0), rows.length - 1)];
      this.at = slot;
      this.showTip(row, slot);
      const read = this.shown.map((index) => `${this.figure.series[index]} ${this.cell(row, index)}`);
      const stated = this.figure.stated.filter((one) => one.row === row).map((one) => `the paper states ${one.text} for ${this.figure.series[one.series]}`);
      this.reading.textContent = `${this.figure.labels[row]}: ${[...read, ...stated].join(", ")}`;
    }

    showTip(row, slot) {
      if (this.shown.length === 0) return;
      if (this.figure.kind !== "scatter") {
        this.chart.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: slot });
        return;
      }
      const { values } = this.figure;
      const value = [values[row][0], values[row][this.shown[0]]];
      if (value.includes(null)) return;
      const [x, y] = this.chart.convertToPixel({ seriesIndex: 0 }, value);
      this.chart.dispatchAction({ type: "showTip", x, y });
    }

    drawLegend() {
      const legend = this.section.querySelector(".legend");
      const focused = [...legend.children].indexOf(document.activeElement);
      legend.replaceChildren();
      if (this.figure.series.filter((_, index) => !this.isAxis(index)).length + this.figure.stated.length < 2) return;
      const button = (swatch, name, pressed, toggle) => {
        const made = element("button", legend);
        made.type = "button";
        made.setAttribute("aria-pressed", pressed);
        made.append(swatch);
        element("span", made, name);
        made.addEventListener("click", () => { toggle(); this.redraw(); });
      };
      this.figure.series.forEach((name, index) => {
        if (this.isAxis(index)) return;
        const shown = !this.hidden.has(index);
        button(this.swatch(index), name, shown, () => (shown ? this.hidden.add(index) : this.hidden.delete(index)));
      });
      if (this.figure.stated.length > 0) button(this.diamond(), "stated by the paper", this.paper, () => (this.paper = !this.paper));
      if (focused >= 0) legend.children[focused]?.focus();
    }

    /** A sample of how a series looks. */
    swatch(index) {
      const look = this.look(index);
      const svg = sample();
      if (this.bars) bar(svg, look, this.mark(index));
      else marker(svg, look, this.mark(index), this.figure.kind === "lines");
      return svg;
    }

    diamond() {
      const svg = sample();
      shape(svg, "path", { d: "M10 1 L14.5 7 L10 13 L5.5 7 Z", fill: palette.card, stroke: palette.ink, "stroke-width": 1.75 });
      return svg;
    }
  }

  function sample() {
    const svg = document.createElementNS(SVG, "svg");
    for (const [name, value] of Object.entries({ width: 20, height: 14, viewBox: "0 0 20 14", "aria-hidden": "true" })) svg.setAttribute(name, value);
    return svg;
  }

  function shape(parent, name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  }

  /** A piece of a bar: the colour, and the same pattern as the chart's, once. */
  function bar(svg, look, mark) {
    shape(svg, "rect", { width: 20, height: 14, rx: 2, fill: palette.series[look] });
    const line = (d, width) => shape(svg, "path", { d, stroke: palette.card, "stroke-width": width, fill: "none" });
    const dots = (draw) => [[3, 3], [10, 3], [17, 3], [6.5, 7], [13.5, 7], [3, 11], [10, 11], [17, 11]].forEach(([x, y]) => draw(x, y));
    const fill = { fill: palette.card };
    [
      () => {},
      () => line("M-2 12 L10 0 M2 16 L18 0 M9 16 L25 0", 2),
      () => dots((cx, cy) => shape(svg, "circle", { cx, cy, r: 1.6, ...fill })),
      () => line("M0 3 H20 M0 7.5 H20 M0 12 H20", 2),
      () => line("M-5 0 L11 16 M2 0 L18 16 M9 0 L25 16", 2),
      () => [0, 4, 8, 12].forEach((y) => [0, 8, 16].forEach((x) => shape(svg, "rect", { x: x + y % 8, y, width: 4, height: 4, ...fill }))),
      () => line("M2 0 V14 M6 0 V14 M10 0 V14 M14 0 V14 M18 0 V14", 1.3),
      () => dots((x, y) => shape(svg, "path", { d: `M${x} ${y - 2} l2.2 4 h-4.4 Z`, ...fill })),
    ][mark]();
  }

  /** A point of a line or a scatter, with the line's dashes. */
  function marker(svg, look, mark, lined) {
    const color = palette.series[look];
    const dashes = { solid: "", dashed: "5 3", dotted: "2 2" }[DASHES[mark]] ?? String(DASHES[mark]);
    if (lined) shape(svg, "path", { d: "M0 7 H20", stroke: color, "stroke-width": 2.25, "stroke-dasharray": dashes });
    const hollow = SYMBOLS[mark].startsWith("empty");
    const paint = { fill: hollow ? palette.card : color, stroke: color, "stroke-width": hollow ? 2 : 0 };
    const kind = SYMBOLS[mark].replace("empty", "").toLowerCase();
    if (kind === "circle") shape(svg, "circle", { cx: 10, cy: 7, r: 4.2, ...paint });
    else if (kind.endsWith("rect")) shape(svg, "rect", { x: 6, y: 3, width: 8, height: 8, rx: kind === "rect" ? 0 : 2.5, ...paint });
    else shape(svg, "path", { d: SYMBOLS[mark] === PLUS ? "M8.5 2.5 H11.5 V5.5 H14.5 V8.5 H11.5 V11.5 H8.5 V8.5 H5.5 V5.5 H8.5 Z" : "M10 2.5 L14.5 11 H5.5 Z", ...paint });
  }

  /** The table of a figure with every digit, the paper's values in columns of their own. */
  function csv(figure) {
    const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const stated = (row, series) => figure.stated.filter((one) => one.row === row && one.series === series).map((one) => one.value).join(" ");
    const named = figure.series.map((_, index) => index).filter((index) => figure.stated.some((one) => one.series === index));
    const head = [...figure.columns, ...named.map((index) => `${figure.columns[index + 1]} (paper)`)];
    const lines = figure.labels.map((label, row) => [label, ...figure.values[row].map((value) => value ?? ""), ...named.map((index) => stated(row, index))]);
    return [head, ...lines].map((line) => line.map((cell) => quote(String(cell))).join(",") + "\r\n").join("");
  }

  function offerDownload(figure, section) {
    const button = section.querySelector(".download");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const link = element("a");
      link.href = URL.createObjectURL(new Blob([csv(figure)], { type: "text/csv" }));
      link.download = `${figure.file}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  const charts = [];
  const wanted = figures.map((figure, index) => [figure, sections[index]]).filter(([figure]) => figure.drawn);
  const tell = () => (root.dataset.charts = `${charts.length} of ${wanted.length}`);
  /** How many are drawn before the page answers again. */
  let next = 0;

  function drawOne() {
    if (next >= wanted.length) return false;
    const [figure, section] = wanted[next++];
    try {
      charts.push(new Chart(figure, section));
    } catch (error) {
      console.error(`${figure.file}: the chart was not drawn`, error);
      element("p", section.querySelector(".chart"), "This chart could not be drawn. Its numbers are in the table.", "remark");
    }
    tell();
    return true;
  }

  function drawRest() { if (drawOne()) setTimeout(drawRest); }

  function redrawAll() {
    readPalette();
    charts.forEach((chart) => chart.redraw());
  }

  readPalette();
  tell();
  figures.forEach((figure, index) => offerDownload(figure, sections[index]));
  drawRest();

  let width = root.clientWidth;
  let pending;
  window.addEventListener("resize", () => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redrawAll);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  window.addEventListener("beforeprint", () => {
    root.dataset.paper = "";
    while (drawOne());
    redrawAll();
  });
  window.addEventListener("afterprint", () => {
    delete root.dataset.paper;
    redrawAll();
  });
})();
