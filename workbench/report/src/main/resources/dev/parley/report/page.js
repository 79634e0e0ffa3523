"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const marks = new Map(data.technologies.map((t) => [t.name, t]));
  /** Lines are dashed by the shape of their marks, so that they are told apart without their colour. */
  const dashes = ["solid", [6, 3], [2, 2], [9, 3, 2, 3], [12, 4], [4, 2, 1, 2]];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const named = (technology) => (technology === "empty" ? "empty service" : technology);

  const brief = (v) => {
    const size = Math.abs(v);
    if (size >= 1000) return Math.round(v).toLocaleString("en").replace(/,/g, "\u2009");
    return v.toFixed(size >= 100 || v === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.01 ? 3 : 4);
  };
  const tick = (v) => {
    if (v >= 1e6) return `${+(v / 1e6).toPrecision(3)}M`;
    if (v >= 1e4) return `${+(v / 1e3).toPrecision(3)}k`;
    return String(+v.toPrecision(6));
  };
  const escaped = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

  // room for texts, measured in the font that draws them
  const pen = document.createElement("canvas").getContext("2d");
  const extent = (text) => {
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };
  const room = (texts) => Math.ceil(Math.max(0, ...texts.map(extent))) + 14;
  /** A title in as many lines as it takes. */
  const folded = (title, width) => title.split(" ").reduce((lines, word) => {
    const longer = `${lines.at(-1)} ${word}`.trim();
    return extent(longer) <= width ? [...lines.slice(0, -1), longer] : [...lines, word];
  }, [""]).join("\n");

  const base = (colours) => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: colours.ink },
    tooltip: {
      confine: true, backgroundColor: colours.raised, borderColor: colours.line,
      textStyle: { color: colours.ink, fontSize: 13 },
    },
  });
  const valueAxis = (title, width, colours) => ({
    name: folded(title, width), nameLocation: "middle", nameGap: 30,
    nameTextStyle: { color: colours.soft, fontSize: 12, lineHeight: 14 },
    axisLabel: { color: colours.soft, fontSize: 11, hideOverlap: true, formatter: tick },
    axisLine: { show: false }, axisTick: { show: false },
    splitLine: { lineStyle: { color: colours.grid } },
  });
  const scale = (chart) => (chart.wide
    ? { type: "log", logBase: 10, minorSplitLine: { show: false } }
    : { type: "value", min: 0, splitNumber: 4 });

  const palette = () => ({
    ink: css("--ink"), soft: css("--soft"), line: css("--line"), grid: css("--grid"), raised: css("--raised"),
    of: (technology) => css(marks.get(technology).colour),
  });
  const isVoid = (p) => p.flag.startsWith("void");
  /** Cold, or of unknown warmth; a cold start that was asked for counts. */
  const isNotWarm = (p) => p.flag.startsWith("cold: ") || p.flag.startsWith("unknown: ");
  /** What stands behind a value that does not count, or not in every restart. */
  const flagged = (p) => {
    const word = /^(?:void|cold(?=: )|unknown(?=: ))/.exec(p.flag)?.[0];
    const some = /\d+ of \d+(?= restarts)/.exec(p.flag)?.[0];
    return (word ? ` ${word}` : "") + (some ? ` (${some})` : "");
  };
  /** A technology's own colour; grey where its figure is not known to be warm. */
  const tint = (p, colours) => (isNotWarm(p) ? colours.soft : colours.of(p.technology));
  const why = (p) => (p.flag ? `<br><i style="white-space:normal">${escaped(p.flag)}</i>` : "");
  const hint = (p, unit) =>
    `<b>${escaped(named(p.technology))}</b>` + (p.value === undefined ? "" : `<br>${brief(p.value)} ${unit}`) +
    (p.low === undefined ? "" : `<br>95 % interval ${brief(p.low)} to ${brief(p.high)} ${unit}`) +
    (p.theirs === undefined ? "" : `<br>the paper: ${brief(p.theirs)} ${unit}`) +
    (p.inner === undefined ? "" : `<br>payload ${brief(p.inner)} ${unit}`) + why(p);

  /** Texts one below the other, each so many pixels high, and values across. */
  const listed = (texts, each, color, right, title, colours, width) => {
    const left = Math.min(room(texts), Math.round(0.42 * width));
    const middle = left + (width - left - right) / 2;
    return {
      height: texts.length * each + 78,
      option: {
        ...base(colours),
        grid: { left, right, top: 8, bottom: 64 },
        xAxis: valueAxis(title, 2 * Math.min(middle, width - middle) - 8, colours),
        yAxis: {
          type: "category", inverse: true, data: texts.map((_, i) => i),
          axisLabel: { interval: 0, fontSize: 12, width: left - 12, overflow: "truncate", color, formatter: (_, i) => texts[i] },
          axisLine: { lineStyle: { color: colours.line } }, axisTick: { show: false },
        },
      },
    };
  };
  /** A line for each technology, best first, below the label of their row; values across. */
  const rowed = (chart, colours, width, title) => {
    const lines = chart.rows.flatMap((r) => [...(r.label ? [{ head: r.label }] : []), ...r.points.map((p) => ({ p }))]);
    const told = (p) => `${brief(p.value)} ${chart.unit}${flagged(p)}`;
    return {
      lines, told,
      ...listed(
        lines.map((line) => line.head ?? named(line.p.technology)), 22,
        (_, i) => (lines[i].head ? colours.soft : colours.ink),
        room(lines.filter((line) => line.p).map((line) => told(line.p))) + 14, title, colours, width),
    };
  };

  /** A mark with its interval; hollow where it is void, grey where it is not known to be warm. */
  const intervals = (chart, colours, width) => {
    const { lines, told, height, option } = rowed(chart, colours, width, chart.axis);
    const shown = lines.flatMap((line, i) => (line.p ? [{ point: line.p, value: [line.p.value, line.p.low ?? line.p.value, line.p.high ?? line.p.value, i] }] : []));
    return {
      height,
      option: {
        ...option,
        xAxis: { ...option.xAxis, ...scale(chart) },
        series: [{
          type: "custom", clip: false, encode: { x: [0, 1, 2], y: 3 }, data: shown,
          tooltip: { formatter: (at) => hint(at.data.point, chart.unit) },
          renderItem: (params, api) => {
            const p = shown[params.dataIndex].point;
            const [x, y] = api.coord([api.value(0), api.value(3)]);
            const left = api.coord([api.value(1), api.value(3)])[0];
            const right = api.coord([api.value(2), api.value(3)])[0];
            const colour = tint(p, colours);
            const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 2 } });
            return {
              type: "group",
              children: [
                line(left, y, right, y), line(left, y - 4, left, y + 4), line(right, y - 4, right, y + 4),
                { type: "path", x, y, shape: { pathData: marks.get(p.technology).path }, style: { fill: isVoid(p) ? colours.raised : colour, stroke: colour, lineWidth: 1.5 } },
                { type: "text", x: Math.max(right, x) + 10, y, style: { text: told(p), fill: colours.soft, fontSize: 12, verticalAlign: "middle" } },
              ],
            };
          },
        }],
      },
    };
  };

  const endLabel = (text, colours) => ({ show: true, position: "right", color: colours.soft, fontSize: 12, formatter: text });
  /** Bars of parts that add up; where values are far apart each bar shows its shares of a whole. */
  const stacked = (chart, colours, width, count, whole, part, item, tip) => {
    const { lines, told, height, option } = rowed(chart, colours, width, chart.axis);
    return {
      height,
      option: {
        ...option,
        xAxis: { ...option.xAxis, type: "value", min: 0, splitNumber: 4, ...(chart.wide ? { max: 100, interval: 25 } : {}) },
        tooltip: { ...option.tooltip, trigger: "item" },
        series: Array.from({ length: count }, (_, k) => ({
          type: "bar", stack: "one", barMaxWidth: 15,
          data: lines.map(({ p }) => {
            const value = p && part(p, k);
            if (value === undefined) return "-";
            const isLast = part(p, k + 1) === undefined;
            return {
              value: chart.wide ? (100 * value) / whole(p) : value, point: p, part: k, itemStyle: item(p, k),
              ...(isLast ? { label: endLabel(told(p), colours) } : {}),
            };
          }),
          tooltip: { formatter: (at) => tip(at.data.point, at.data.part) },
        })),
      },
    };
  };

  /** Bars of wire bytes, the payload in them solid. */
  const stack = (chart, colours, width) => {
    const row = (p) => chart.rows.find((r) => r.points.includes(p));
    const most = (p) => Math.max(...row(p).points.map((q) => q.value));
    const inner = (p) => Math.min(p.inner ?? 0, p.value);
    return stacked(chart, colours, width, 2, most,
      (p, k) => [inner(p), p.value - inner(p)][k],
      (p, k) => ({ color: tint(p, colours) + (k === 0 ? "" : "60") }),
      (p) => hint(p, chart.unit));
  };

  /** Bars cut into hops from the client inwards; shades alternate so that neighbours can be told apart. */
  const hops = (chart, colours, width) => {
    const sum = (p) => p.parts.reduce((all, q) => all + q.value, 0);
    const count = Math.max(...chart.rows.flatMap((r) => r.points.map((p) => p.parts.length)));
    return stacked(chart, colours, width, count, sum,
      (p, k) => p.parts[k]?.value,
      (p, k) => ({ color: tint(p, colours) + ["", "b0", "70"][k % 3], borderColor: colours.raised, borderWidth: 1 }),
      (p, k) => `<b>${escaped(named(p.technology))}</b>` + p.parts.map((q, i) => `<br>${i === k ? "<b>" : ""}${escaped(q.label)}: ` +
        `${brief(q.value)} ${chart.unit}, ${Math.round((100 * q.value) / sum(p))} %${i === k ? "</b>" : ""}`).join("") + why(p));
  };

  const bars = (chart, colours, width) => stacked(chart, colours, width, 1, (p) => p.value,
    (p, k) => (k === 0 ? p.value : undefined), (p) => ({ color: tint(p, colours) }), (p) => hint(p, chart.unit));

  /** Lines over a number; a void one is thin and grey. Every `each`-th point has the technology's mark. */
  const lined = (chart, row, colours, width, points, across, each) => ({
    height: 340,
    option: {
      ...base(colours),
      grid: { left: 80, right: 24, top: 16, bottom: 64 },
      tooltip: { ...base(colours).tooltip, trigger: "axis", formatter: (all) => `<b>${across.told(all[0].value[0])}</b>` +
        all.map((one) => `<br>${one.marker}${escaped(one.seriesName)}: ${brief(one.value[1])} ${chart.unit}`).join("") },
      xAxis: { ...valueAxis(across.title, width - 120, colours), type: "value", ...across.axis },
      yAxis: { ...valueAxis(chart.axis, 250, colours), ...scale(chart), nameGap: 42 },
      series: row.points.map((p) => {
        const { path, shape } = marks.get(p.technology);
        const colour = isVoid(p) ? colours.soft : tint(p, colours);
        return {
          type: "line", name: p.technology, data: points(p), symbol: `path://${path}`,
          symbolSize: (_, at) => (at.dataIndex % each === 0 ? 9 : 0),
          lineStyle: { width: isVoid(p) ? 1 : 2, color: colour, type: dashes[shape] }, itemStyle: { color: colour },
        };
      }),
    },
  });

  /** The row that the reader chose. */
  const chosen = (chart) => chart.rows[Number(document.querySelector(`select[data-chart="${chart.id}"]`).value)];
  const tail = (chart, colours, width) => {
    const row = chosen(chart);
    const at = (percent) => -Math.log10(1 - percent / 100);
    const last = Math.max(1, ...row.points.map((p) => at(p.tail[p.tail.length - 1][0])));
    const labels = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"];
    const across = {
      title: "Share of requests at or below (percentile)",
      told: (x) => `${+(100 * (1 - 10 ** -x)).toPrecision(6)} %`,
      axis: {
        min: 0, max: Math.ceil(last * 2) / 2, interval: 1,
        axisLabel: { color: colours.soft, fontSize: 11, hideOverlap: true, formatter: (v) => labels[v] ?? "" },
      },
    };
    return lined(chart, row, colours, width, (p) => p.tail.map((t) => [at(t[0]), t[1]]), across, 4);
  };

  /** Over a number: hops, neighbours asked, clients. */
  const lines = (chart, colours, width) => {
    const row = chart.rows[0];
    const counts = row.points.flatMap((p) => p.tail.map((t) => t[0]));
    const across = { title: chart.across, told: String, axis: { min: Math.min(...counts), max: Math.max(...counts), minInterval: 1 } };
    return lined(chart, row, colours, width, (p) => p.tail, across, 1);
  };

  // a paper's figures beside ours
  const decides = (p) => !/^(?:void|cold: |unknown: |too few: |not decided)/.test(p.flag);
  const shade = (p, colours) => (decides(p) ? colours.of(p.technology) : colours.soft);
  const path = (name) => ({ pathData: marks.get(name).path });
  /** Theirs as hollow marks, and ours as full ones with their intervals; `spot` is where a value of a point stands. */
  const marked = (chart, points, colours, encode, value, spot) => {
    const entries = points.flatMap((p) => [
      ...(p.theirs === undefined ? [] : [{ p, isTheirs: true, ends: [p.theirs, p.theirs, p.theirs] }]),
      ...(p.value === undefined ? [] : [{ p, isTheirs: false, ends: [p.value, p.low ?? p.value, p.high ?? p.value] }]),
    ]);
    return {
      type: "custom", clip: false, encode, data: entries.map((e) => ({ value: value(e.p, e.ends), point: e.p })),
      tooltip: { formatter: (at) => hint(at.data.point, escaped(chart.unit)) },
      renderItem: (params, api) => {
        const { p, isTheirs, ends } = entries[params.dataIndex];
        const [[x, y], [x1, y1], [x2, y2]] = ends.map((end) => spot(api, p, end));
        const colour = isTheirs ? colours.of(p.technology) : shade(p, colours);
        return {
          type: "group",
          children: [
            { type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 2 } },
            { type: "path", x, y, shape: path(p.technology), style: { fill: isTheirs ? colours.raised : colour, stroke: colour, lineWidth: 1.5 } },
          ],
        };
      },
    };
  };
  /** Conditions one below the other; technologies share the line of theirs, each a little lower than the one before. */
  const beside = (chart, colours, width) => {
    const step = 7;
    const each = Math.max(20, step * Math.max(...chart.rows.map((r) => r.points.length)) + 8);
    const { height, option } = listed(chart.rows.map((r) => r.label), each, colours.ink, 24, chart.axis, colours, width);
    const row = new Map(chart.rows.flatMap((r, i) => r.points.map((p) => [p, i])));
    const shift = new Map(chart.rows.flatMap((r) => r.points.map((p, i) => [p, (i - (r.points.length - 1) / 2) * step])));
    const points = chart.rows.flatMap((r) => r.points);
    const isSigned = points.some((p) => [p.value, p.low, p.theirs].some((v) => v < 0));
    return {
      height,
      option: {
        ...option,
        xAxis: { ...option.xAxis, ...scale(chart), ...(isSigned ? { min: null } : {}) },
        yAxis: { ...option.yAxis, splitLine: { show: true, lineStyle: { color: colours.grid } } },
        series: [marked(chart, points, colours, { x: [0, 1, 2], y: 3 }, (p, ends) => [...ends, row.get(p)], (api, p, end) => {
          const [x, y] = api.coord([end, row.get(p)]);
          return [x, y + shift.get(p)];
        })],
      },
    };
  };
  const pairs = (chart, colours, width) => {
    const side = Math.min(width - 104, 360);
    const axis = { type: "log", logBase: 10, minorSplitLine: { show: false } };
    return {
      height: side + 80,
      option: {
        ...base(colours),
        grid: { left: 80, width: side, top: 16, height: side },
        xAxis: { ...valueAxis(chart.across, side, colours), ...axis },
        yAxis: { ...valueAxis(chart.axis, side, colours), ...axis, nameGap: 42 },
        series: [{
          type: "scatter", symbolSize: 9,
          data: chart.rows[0].points.map((p) => ({
            value: [p.theirs, p.value], point: p, symbol: `path://${marks.get(p.technology).path}`, itemStyle: { color: colours.of(p.technology) },
          })),
          tooltip: { formatter: (at) => hint(at.data.point, escaped(chart.unit)) },
        }],
      },
    };
  };
  /** A line through what decides something, and every point with its interval. */
  const curve = (chart, colours, width) => {
    const points = chosen(chart).points;
    const names = [...new Set(points.map((p) => p.technology))];
    return {
      height: 340,
      option: {
        ...base(colours),
        grid: { left: 80, right: 24, top: 16, bottom: 64 },
        xAxis: { ...valueAxis(chart.across, width - 120, colours), type: "value", min: 0 },
        yAxis: { ...valueAxis(chart.axis, 250, colours), ...scale(chart), nameGap: 42 },
        series: [
          ...names.map((name) => ({
            type: "line", silent: true, symbol: "none",
            data: points.filter((p) => p.technology === name && decides(p)).sort((a, b) => a.at - b.at).map((p) => [p.at, p.value]),
            lineStyle: { width: 2, color: colours.of(name), type: dashes[marks.get(name).shape] },
          })),
          marked(chart, points, colours, { x: 0, y: [1, 2, 3] }, (p, ends) => [p.at, ...ends], (api, p, end) => api.coord([p.at, end])),
        ],
      },
    };
  };

  const kinds = { intervals, stack, bars, tail, hops, lines, beside, pairs, curve };
  const drawn = new Map();
  const draw = (element) => {
    const chart = data.charts.find((c) => c.id === element.dataset.chart);
    const width = element.clientWidth;
    const { height, option } = kinds[chart.kind](chart, palette(), width);
    element.style.height = `${height}px`;
    let instance = drawn.get(element)?.instance;
    if (!instance) instance = echarts.init(element, null, { renderer: "svg" });
    drawn.set(element, { instance, width });
    instance.resize();
    instance.setOption(option, true);
    element.dataset.drawn = "yes";
  };
  const drawAll = () => document.querySelectorAll("div.chart").forEach(draw);
  drawAll();
  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    if (target.clientWidth !== drawn.get(target).width) draw(target);
  }));
  drawn.forEach((_, element) => observer.observe(element));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.querySelectorAll("select[data-chart]").forEach((select) => select.addEventListener(
    "change", () => draw(document.querySelector(`div[data-chart="${select.dataset.chart}"]`))));
  matchMedia("print").addEventListener("change", drawAll);
})();
