package dev.parley.report;

import java.util.List;

/**
 * What frames the content of a page. Style, script and data stand in the file, and its content policy forbids anything
 * else, so that a page needs no network.
 *
 * @param data of the charts, as JSON in which nothing ends a script element; empty on a page that draws none
 * @param scripts in the order in which they run; none where there is no data
 */
record Frame(String title, String style, String data, List<String> scripts) {
    private static final String CHARTS = "/META-INF/resources/webjars/echarts/5.5.0/echarts.min.js";

    Frame {
        scripts = List.copyOf(scripts);
        if (data.isEmpty() != scripts.isEmpty()) {
            throw new IllegalArgumentException(title + ": " + scripts.size() + " scripts for " + data.length()
                    + " characters of data (expected: both or neither)");
        }
    }

    /** The frame of a page whose charts are drawn from the data. */
    static Frame ofCharts(String title, String data) {
        String charts = Pages.resource(CHARTS).replace("</script", "<\\/script");
        return new Frame(title, Pages.resource("page.css"), data, List.of(charts, Pages.resource("page.js")));
    }
}
