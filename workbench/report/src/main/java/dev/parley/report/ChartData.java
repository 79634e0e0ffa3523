package dev.parley.report;

import dev.parley.report.Palette.Mark;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import tools.jackson.databind.json.JsonMapper;

/** What the page's script draws, as JSON. */
final class ChartData {
    private ChartData() {}

    static String json(List<Mark> marks, List<Chart> charts) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put(
                "technologies",
                Stream.concat(marks.stream(), Stream.of(Mark.EMPTY))
                        .map(ChartData::mark)
                        .toList());
        data.put("charts", charts.stream().map(ChartData::chart).toList());
        // in a script element only "<" can end or change it
        return JsonMapper.builder().build().writeValueAsString(data).replace("<", "\\u003c");
    }

    private static Map<String, Object> mark(Mark mark) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("name", mark.technology());
        map.put("colour", mark.colour());
        map.put("path", mark.path());
        map.put("shape", mark.shape());
        return map;
    }

    private static Map<String, Object> chart(Chart chart) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("id", chart.id());
        map.put("kind", chart.kind().name().toLowerCase(Locale.ROOT));
        map.put("axis", chart.drawnAxis());
        map.put("across", chart.across());
        map.put("unit", chart.unit());
        map.put("wide", chart.isWide());
        map.put("rows", chart.rows().stream().map(ChartData::row).toList());
        return map;
    }

    private static Map<String, Object> row(Chart.Row row) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("label", row.label());
        map.put("points", row.points().stream().map(ChartData::point).toList());
        return map;
    }

    private static Map<String, Object> point(Chart.Point p) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("technology", p.technology());
        put(map, "value", p.value());
        put(map, "low", p.low());
        put(map, "high", p.high());
        put(map, "inner", p.inner());
        put(map, "at", p.at());
        put(map, "theirs", p.theirs());
        map.put("flag", p.flag());
        if (!p.tail().isEmpty()) {
            map.put("tail", p.tail());
        }
        if (!p.parts().isEmpty()) {
            map.put("parts", p.parts());
        }
        return map;
    }

    private static void put(Map<String, Object> map, String name, double value) {
        if (Double.isFinite(value)) {
            map.put(name, value);
        }
    }
}
