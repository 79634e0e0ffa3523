"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // a technology keeps its colour from report to report
  const known = ["rest", "grpc", "rpcx", "openfeign", "graphql", "websocket", "rabbitmq", "kafka"];
  const slots = new Map();
  for (const { name } of data.technologies) {
    if (known.includes(name)) slots.set(name, known.indexOf(name));
  }
  for (const { name } of data.technologies) {
    if (!slots.has(name)) {
      let slot = 0;
      while ([...slots.values()].includes(slot)) slot++;
      slots.set(name, slot % 8);
    }
  }
  const titles = new Map(data.technologies.map((t) => [t.name, t.title]));
  titles.set("empty", "empty service");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const variable = (technology) => (slots.has(technology) ? `--t${slots.get(technology)}` : "--empty");
  for (const dot of document.querySelectorAll("i[data-technology]")) {
    dot.style.background = `var(${variable(dot.dataset.technology)})`;
  }

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

  // room for the longest name, measured in the font that draws it
  const pen = document.createElement("canvas").getContext("2d");
  const room = (names) => {
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return Math.ceil(Math.max(0, ...names.map((n) => pen.measureText(n).width))) + 14;
  };

  const base = (chart, colours) => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: colours.ink },
    tooltip: {
      confine: true, backgroundColor: colours.raised, borderColor: colours.line,
      textStyle: { color: colours.ink, fontSize: 13 },
    },
    valueAxis: {
      name: chart.axis, nameLocation: "middle", nameGap: 30,
      nameTextStyle: { color: colours.soft, fontSize: 12 },
      axisLabel: { color: colours.soft, fontSize: 11, hideOverlap: true, formatter: tick },
      axisLine: { show: false }, axisTick: { show: false },
      splitLine: { lineStyle: { color: colours.grid } },
    },
    nameAxis: {
      type: "category", inverse: true,
      axisLabel: { color: colours.ink, fontSize: 12 },
      axisLine: { lineStyle: { color: colours.line } }, axisTick: { show: false },
    },
  });
  const palette = () => ({
    ink: css("--ink"), soft: css("--soft"), line: css("--line"), grid: css("--grid"), raised: css("--raised"),
    of: (technology) => css(variable(technology)),
  });
  /** Cold, or of unknown warmth; a cold start that was asked for counts. */
  const isNotWarm = (flag) => flag.startsWith("cold: ") || flag.startsWith("unknown: ");
  /** What stands behind the value of a trial that does not count, with the blank before it. */
  const mark = (flag) => flag.replace(/^(void|cold(?=: )|unknown(?=: )|).*/s, (all, word) => (word ? ` ${word}` : ""));
  /** A technology's own colour; grey where its figure is not known to be warm. */
  const tint = (p, colours) => (p.flag && isNotWarm(p.flag) ? colours.soft : colours.of(p.technology));
  const scale = (values) => {
    const positive = values.filter((v) => v > 0);
    const wide = positive.length > 0 && Math.max(...positive) / Math.min(...positive) > 30;
    return wide && positive.length === values.length
      ? { type: "log", logBase: 10, minorSplitLine: { show: false } }
      : { type: "value", min: 0, splitNumber: 4 };
  };
  const hint = (p, unit) =>
    `<b>${escaped(titles.get(p.technology) ?? p.technology)}</b><br>${brief(p.value)} ${unit}` +
    (p.low === undefined ? "" : `<br>95 % interval ${brief(p.low)} to ${brief(p.high)}`) +
    (p.inner === undefined ? "" : `<br>payload ${brief(p.inner)} ${unit}`) +
    (p.flag ? `<br><i style="white-space:normal">${escaped(p.flag)}</i>` : "");
  const unitOf = (chart) => (/\(([^)]*)\)$/.exec(chart.axis) ?? ["", ""])[1];

  const present = (chart) => data.technologies.map((t) => t.name)
    .filter((name) => chart.rows.some((r) => r.points.some((p) => p.technology === name)));

  /** Rows of messages; in each a dot with its interval for every technology, one below the other. Void ones are hollow, cold ones grey. */
  const intervals = (chart, colours) => {
    const names = present(chart);
    const parts = base(chart, colours);
    const all = chart.rows.flatMap((r) => r.points.flatMap((p) => [p.value, p.low ?? p.value, p.high ?? p.value]));
    const longest = Math.max(...chart.rows.flatMap((r) => r.points.map((p) => (brief(p.value) + mark(p.flag ?? "")).length)));
    return {
      height: chart.rows.length * (names.length * 22 + 14) + 62,
      option: {
        ...parts,
        grid: { left: room(chart.rows.map((r) => r.label)), right: Math.max(60, 15 + 6 * longest), top: 8, bottom: 48 },
        xAxis: { ...parts.valueAxis, ...scale(all) },
        yAxis: { ...parts.nameAxis, data: chart.rows.map((r) => r.label), splitLine: { show: chart.rows.length > 1, lineStyle: { color: colours.grid } } },
        series: names.map((name, i) => ({
          type: "custom", name, clip: false, encode: { x: [0, 1, 2], y: 3 },
          data: chart.rows.flatMap((r, row) => r.points.filter((p) => p.technology === name)
            .map((p) => ({ value: [p.value, p.low ?? p.value, p.high ?? p.value, row], point: p }))),
          tooltip: { formatter: (at) => hint(at.data.point, unitOf(chart)) },
          renderItem: (params, api) => {
            const centre = api.coord([api.value(0), api.value(3)]);
            const band = api.size([0, 1])[1];
            const y = centre[1] + (i - (names.length - 1) / 2) * Math.min(22, (band - 8) / names.length);
            const left = api.coord([api.value(1), api.value(3)])[0];
            const right = api.coord([api.value(2), api.value(3)])[0];
            const source = chart.rows[api.value(3)].points.find((p) => p.technology === name);
            const hollow = source && source.flag.startsWith("void");
            const cold = source && isNotWarm(source.flag);
            const colour = cold ? colours.soft : colours.of(name);
            const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 2 } });
            return {
              type: "group",
              children: [
                line(left, y, right, y), line(left, y - 4, left, y + 4), line(right, y - 4, right, y + 4),
                { type: "circle", shape: { cx: centre[0], cy: y, r: 5 }, style: { fill: hollow ? colours.raised : colour, stroke: colour, lineWidth: 2 } },
                { type: "text", x: Math.max(right, centre[0]) + 9, y,
                  style: { text: brief(api.value(0)) + mark(source?.flag ?? ""), fill: colours.soft, fontSize: 11, verticalAlign: "middle" } },
              ],
            };
          },
        })),
      },
    };
  };

  /** Bars of wire bytes, the payload in them solid. */
  const stack = (chart, colours) => {
    const names = present(chart);
    const parts = base(chart, colours);
    const rows = chart.rows.flatMap((r, i) => [
      ...(i > 0 ? [{ label: "" }] : []),
      ...names.map((name) => ({ label: r.label, name, p: r.points.find((q) => q.technology === name) })).filter((q) => q.p),
    ]);
    // bars on a logarithmic axis have no honest length: where messages differ widely, each message is drawn on its own scale
    const shares = scale(rows.filter((r) => r.p).map((r) => r.p.value)).type === "log";
    const most = (label) => Math.max(...rows.filter((r) => r.label === label).map((r) => r.p.value));
    const shown = (r, v) => (shares ? (100 * v) / most(r.label) : v);
    return {
      height: rows.length * 23 + 62,
      option: {
        ...parts,
        grid: { left: room(chart.rows.map((r) => r.label)), right: 72, top: 8, bottom: 48 },
        xAxis: { ...parts.valueAxis, type: "value", min: 0, splitNumber: 4,
          ...(shares ? { max: 100, interval: 25, name: "Bytes, in percent of the message's largest" } : {}) },
        yAxis: { ...parts.nameAxis, data: rows.map((r, i) => i), axisLabel: { ...parts.nameAxis.axisLabel, interval: 0,
          formatter: (_, i) => (i === 0 || rows[i - 1].label !== rows[i].label ? rows[i].label : "") } },
        tooltip: { ...parts.tooltip, trigger: "item" },
        series: ["inner", "rest"].map((part) => ({
          type: "bar", stack: "wire", barMaxWidth: 15,
          data: rows.map((r) => {
            if (!r.p) return "-";
            const inner = Math.min(r.p.inner ?? 0, r.p.value);
            return {
              value: shown(r, part === "inner" ? inner : r.p.value - inner), point: r.p,
              itemStyle: { color: colours.of(r.name) + (part === "inner" ? "" : "60") },
            };
          }),
          label: { show: part === "rest", position: "right", color: colours.soft, fontSize: 11, formatter: (at) => brief(at.data.point.value) },
          tooltip: { formatter: (at) => hint(at.data.point, "B") },
        })),
      },
    };
  };

  const bars = (chart, colours) => {
    const parts = base(chart, colours);
    const points = chart.rows[0].points;
    return {
      height: points.length * 30 + 62,
      option: {
        ...parts,
        grid: { left: room(points.map((p) => p.technology)), right: 60, top: 8, bottom: 48 },
        xAxis: { ...parts.valueAxis, type: "value", min: 0, splitNumber: 4 },
        yAxis: { ...parts.nameAxis, data: points.map((p) => (p.technology === "empty" ? "empty" : p.technology)) },
        series: [{
          type: "bar", barMaxWidth: 16,
          data: points.map((p) => ({ value: p.value, point: p, itemStyle: { color: tint(p, colours) } })),
          label: { show: true, position: "right", color: colours.soft, fontSize: 11, formatter: (at) => brief(at.value) },
          tooltip: { formatter: (at) => hint(at.data.point, unitOf(chart)) },
        }],
      },
    };
  };

  const tail = (chart, colours) => {
    const row = chart.rows[Number(document.querySelector("select[data-chart=tail]").value)];
    const parts = base(chart, colours);
    const at = (percent) => -Math.log10(1 - percent / 100);
    const values = row.points.flatMap((p) => p.tail.map((t) => t[1]));
    const last = Math.max(1, ...row.points.map((p) => at(p.tail[p.tail.length - 1][0])));
    const labels = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"];
    return {
      height: 360,
      option: {
        ...parts,
        grid: { left: 64, right: 24, top: 16, bottom: 52 },
        tooltip: { ...parts.tooltip, trigger: "axis", formatter: (all) => `<b>${+(100 * (1 - 10 ** -all[0].value[0])).toPrecision(6)} %</b>` +
          all.map((one) => `<br>${one.marker}${escaped(titles.get(one.seriesName))}: ${brief(one.value[1])} ms`).join("") },
        xAxis: { ...parts.valueAxis, type: "value", min: 0, max: Math.ceil(last * 2) / 2, interval: 1, name: "Share of requests at or below (percentile)",
          axisLabel: { ...parts.valueAxis.axisLabel, formatter: (v) => labels[v] ?? "" } },
        yAxis: { ...parts.valueAxis, ...scale(values), nameGap: 42 },
        series: row.points.map((p) => ({
          type: "line", name: p.technology, showSymbol: false, data: p.tail.map((t) => [at(t[0]), t[1]]),
          lineStyle: { width: 2, color: tint(p, colours), type: p.flag.startsWith("void") ? "dashed" : "solid" },
          itemStyle: { color: tint(p, colours) },
        })),
      },
    };
  };

  /** One bar a technology, cut into hops from the client inwards; shades alternate so that neighbours can be told apart. */
  const hops = (chart, colours) => {
    const names = present(chart);
    const parts = base(chart, colours);
    const rows = chart.rows.flatMap((r, i) => [
      ...(i > 0 ? [{ label: "" }] : []),
      ...names.map((name) => ({ label: r.label, name, p: r.points.find((q) => q.technology === name) })).filter((q) => q.p),
    ]);
    // bars on a logarithmic axis have no honest length: where times differ widely, each bar shows its own shares
    const shares = scale(rows.filter((r) => r.p).map((r) => r.p.value)).type === "log";
    const sum = (p) => p.parts.reduce((all, q) => all + q.value, 0);
    const count = Math.max(...rows.map((r) => (r.p ? r.p.parts.length : 0)));
    const shade = (k) => ["", "b0", "70"][k % 3];
    return {
      height: rows.length * 23 + 62,
      option: {
        ...parts,
        grid: { left: room(chart.rows.map((r) => r.label)), right: 72, top: 8, bottom: 48 },
        xAxis: { ...parts.valueAxis, type: "value", min: 0, splitNumber: 4,
          ...(shares ? { max: 100, interval: 25, name: "Share of its own response time (%)" } : {}) },
        yAxis: { ...parts.nameAxis, data: rows.map((r, i) => i), axisLabel: { ...parts.nameAxis.axisLabel, interval: 0,
          formatter: (_, i) => (i === 0 || rows[i - 1].label !== rows[i].label ? rows[i].label : "") } },
        tooltip: { ...parts.tooltip, trigger: "item" },
        series: Array.from({ length: count }, (_, k) => ({
          type: "bar", stack: "hops", barMaxWidth: 15,
          data: rows.map((r) => {
            const part = r.p?.parts[k];
            if (!part) return "-";
            return {
              value: shares ? (100 * part.value) / sum(r.p) : part.value, point: r.p, part,
              itemStyle: { color: tint(r.p, colours) + shade(k), borderColor: colours.raised, borderWidth: 1 },
              label: { show: k === r.p.parts.length - 1, position: "right", color: colours.soft, fontSize: 11, formatter: brief(r.p.value) },
            };
          }),
          tooltip: { formatter: (at) => `<b>${escaped(titles.get(at.data.point.technology) ?? at.data.point.technology)}</b>` +
            at.data.point.parts.map((q) => `<br>${q === at.data.part ? "<b>" : ""}${escaped(q.label)}: ${brief(q.value)} ms, ` +
              `${Math.round((100 * q.value) / sum(at.data.point))} %${q === at.data.part ? "</b>" : ""}`).join("") +
            (at.data.point.flag ? `<br><i style="white-space:normal">${escaped(at.data.point.flag)}</i>` : "") },
        })),
      },
    };
  };

  /** Over a number: hops, neighbours asked, clients. */
  const lines = (chart, colours) => {
    const row = chart.rows[0];
    const parts = base(chart, colours);
    const values = row.points.flatMap((p) => p.tail.map((t) => t[1]));
    const counts = row.points.flatMap((p) => p.tail.map((t) => t[0]));
    return {
      height: 300,
      option: {
        ...parts,
        grid: { left: 64, right: 24, top: 16, bottom: 52 },
        tooltip: { ...parts.tooltip, trigger: "axis", formatter: (all) => `<b>${all[0].value[0]}</b>` +
          all.map((one) => `<br>${one.marker}${escaped(titles.get(one.seriesName))}: ${brief(one.value[1])} ${unitOf(chart)}`).join("") },
        xAxis: { ...parts.valueAxis, type: "value", min: Math.min(...counts), max: Math.max(...counts), minInterval: 1, name: row.label },
        yAxis: { ...parts.valueAxis, ...scale(values), nameGap: 42 },
        series: row.points.map((p) => ({
          type: "line", name: p.technology, symbol: "circle", symbolSize: 7, data: p.tail,
          lineStyle: { width: 2, color: tint(p, colours), type: p.flag.startsWith("void") ? "dashed" : "solid" },
          itemStyle: { color: tint(p, colours) },
        })),
      },
    };
  };

  const kinds = { intervals, stack, bars, tail, hops, lines };
  const drawn = new Map();
  const draw = (element) => {
    const chart = data.charts.find((c) => c.id === element.dataset.chart);
    const { height, option } = kinds[chart.kind](chart, palette());
    element.style.height = `${height}px`;
    let instance = drawn.get(element);
    if (!instance) {
      instance = echarts.init(element, null, { renderer: "svg" });
      drawn.set(element, instance);
    }
    const { valueAxis, nameAxis, ...rest } = option;
    instance.resize();
    instance.setOption(rest, true);
    element.dataset.drawn = "yes";
  };
  const drawAll = () => document.querySelectorAll("div.chart").forEach(draw);
  // a stacked cell on a narrow screen says which column it was
  for (const table of document.querySelectorAll("table.verdicts")) {
    const columns = [...table.querySelectorAll("thead th")].map((th) => th.textContent);
    for (const line of table.querySelectorAll("tbody tr")) {
      line.querySelectorAll("td").forEach((td, i) => { td.dataset.column = columns[i + 1]; });
    }
  }
  drawAll();
  const observer = new ResizeObserver((entries) => entries.forEach((e) => drawn.get(e.target)?.resize()));
  drawn.forEach((_, element) => observer.observe(element));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.querySelector("select[data-chart=tail]")?.addEventListener("change", () => draw(document.querySelector("div[data-chart=tail]")));
  matchMedia("print").addEventListener("change", drawAll);
})();
