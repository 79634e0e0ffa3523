package dev.parley.studies;

import dev.parley.model.Load;
import dev.parley.model.LoadForm;
import dev.parley.model.LoadForm.Parameter;
import java.util.stream.Collectors;

/** What loads there are, for readers: the table of docs/specs.md. */
public final class LoadHelp {
    private static final String HEAD =
            "| load | what it is | parameters (defaults) | in short |\n| --- | --- | --- | --- |\n";

    private LoadHelp() {}

    /** A row a load, in Markdown. */
    public static String table() {
        return Load.forms().stream().map(LoadHelp::row).collect(Collectors.joining("\n", HEAD, "\n"));
    }

    private static String row(LoadForm form) {
        String source = form.source().isEmpty() ? "" : " Source: " + form.source() + ".";
        return "| `" + form.name() + "` | " + form.meaning() + source + " | "
                + form.parameters().stream().map(LoadHelp::parameter).collect(Collectors.joining("; ")) + " | "
                + form.examples().stream().map(example -> "`" + example + "`").collect(Collectors.joining(", "))
                + " |";
    }

    private static String parameter(Parameter parameter) {
        return "`" + parameter.name() + "`" + (parameter.isNeeded() ? "" : " (`" + parameter.standard() + "`)") + ": "
                + parameter.meaning()
                + (parameter.kind().choices().isEmpty()
                        ? ""
                        : " (" + parameter.kind().expected() + ")");
    }
}
