package dev.parley.report;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Pieces of HTML for the pages of papers. Everything that comes from a run goes through {@link #escaped}. */
final class Html {
    private Html() {}

    static String escaped(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;")
                .replace("'", "&#39;");
    }

    static String dataUri(String csv) {
        return "data:text/csv;charset=utf-8,"
                + URLEncoder.encode(csv, StandardCharsets.UTF_8).replace("+", "%20");
    }

    static String table(List<String> head, List<List<String>> rows) {
        StringBuilder html = new StringBuilder("<table><thead><tr>");
        head.forEach(h -> html.append("<th scope=col>").append(escaped(h)).append("</th>"));
        html.append("</tr></thead><tbody>");
        for (List<String> row : rows) {
            html.append("<tr>");
            row.forEach(cell -> html.append(Table.isNumber(cell) ? "<td class=number>" : "<td>")
                    .append(escaped(cell))
                    .append("</td>"));
            html.append("</tr>");
        }
        return html.append("</tbody></table>").toString();
    }

    static String facts(List<List<String>> pairs) {
        StringBuilder html = new StringBuilder("<dl>");
        pairs.forEach(
                p -> html.append("<div><dt>" + escaped(p.get(0)) + "</dt><dd>" + escaped(p.get(1)) + "</dd></div>"));
        return html.append("</dl>\n").toString();
    }
}
