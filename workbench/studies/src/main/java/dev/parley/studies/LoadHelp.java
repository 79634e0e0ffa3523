package dev.parley.studies;

import dev.parley.model.Load;
import dev.parley.model.LoadForm;
import dev.parley.model.LoadForm.Part;
import java.util.stream.Collectors;

/** What loads there are, for readers: the table of docs/specs.md. */
public final class LoadHelp {
    private static final String HEAD =
            "| load | what it is | parts (defaults) | in short |\n| --- | --- | --- | --- |\n";

    private LoadHelp() {}

    /** A row a load, in Markdown. */
    public static String table() {
        return Load.forms().stream().map(LoadHelp::row).collect(Collectors.joining("\n", HEAD, "\n"));
    }

    private static String row(LoadForm form) {
        String source = form.source().isEmpty() ? "" : " Source: " + form.source() + ".";
        return "| `" + form.name() + "` | " + form.meaning() + source + " | "
                + form.parts().stream().map(LoadHelp::part).collect(Collectors.joining("; ")) + " | "
                + form.examples().stream().map(example -> "`" + example + "`").collect(Collectors.joining(", "))
                + " |";
    }

    private static String part(Part part) {
        return "`" + part.name() + "`" + (part.isNeeded() ? "" : " (`" + part.standard() + "`)") + ": " + part.meaning()
                + (part.kind().choices().isEmpty() ? "" : " (" + part.kind().expected() + ")");
    }
}
