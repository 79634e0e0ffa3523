package dev.parley.cli;

import dev.parley.lab.Catalog;
import dev.parley.lab.Inventory;
import dev.parley.model.Launcher;
import dev.parley.model.LibraryRow;
import dev.parley.model.Technology;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.json.JsonMapper;

/**
 * What each technology asks of a system: criteria architecture, topology and libraries. Source: kazanavicius, section
 * 3.1.
 */
@Command(
        name = "technologies",
        description = {
            "Lists the technologies with their variants; or says what one of them asks of a system: style, components,"
                    + " who knows whom, broker, queues, encoding, settings, libraries with versions, licences and"
                    + " sizes. Measures nothing, and writes nothing.",
            ""
        },
        footer = {
            "",
            "Exit codes: 0 good, 1 error.",
            "",
            "Examples:",
            "  ${ROOT-COMMAND-NAME} technologies",
            "  ${ROOT-COMMAND-NAME} technologies grpc,grpc-tuned",
            "  ${ROOT-COMMAND-NAME} technologies --json"
        })
final class Technologies implements Callable<Integer> {
    private static final int NAME = 18;
    private static final int WIDTH = 100;

    /** What a title may take of the list's width. */
    private static final int TITLE = 52;

    @Parameters(
            arity = "0..1",
            paramLabel = "NAME",
            description = "One technology, or several with commas between: all that is known of them.")
    private String names = "";

    @Option(names = "--json", description = "Print all that is known as JSON, of every technology or of those named.")
    private boolean isJson;

    private final PrintStream out = System.out;

    @Override
    public Integer call() throws InterruptedException {
        Catalog catalog = Catalog.read();
        List<Inventory.Entry> entries =
                new Inventory(catalog).of(names.isEmpty() ? catalog.names() : catalog.select(names));
        if (isJson) {
            out.println(JsonMapper.builder()
                    .build()
                    .writerWithDefaultPrettyPrinter()
                    .writeValueAsString(
                            entries.stream().map(Technologies::fields).toList()));
        } else if (names.isEmpty()) {
            table(entries);
        } else {
            entries.forEach(this::sheet);
        }
        return 0;
    }

    private void table(List<Inventory.Entry> entries) {
        row("technology", "what it is", "needs", "files", "MB");
        for (Inventory.Entry entry : entries) {
            Technology technology = entry.technology();
            row(
                    technology.name() + (entry.isBeyondPapers() ? " *" : ""),
                    cut(technology.title(), TITLE),
                    technology.broker().orElse("-"),
                    Integer.toString(entry.libraries().size()),
                    megabytes(entry.bytes()));
        }
        out.println();
        out.println("files, MB: what a service runs from, without the JDK. * beyond the papers.");
        out.println("Tables, options and studies name a technology as the first column does.");
        out.println("More of one: " + Launcher.command("technologies", "NAME") + "; everything for programs: --json.");
    }

    private void row(String name, String title, String needs, String files, String megabytes) {
        out.printf(Locale.ROOT, "%-24s %-" + TITLE + "s %-9s %5s %6s%n", name, title, needs, files, megabytes);
    }

    private void sheet(Inventory.Entry entry) {
        Technology technology = entry.technology();
        out.println(technology.title() + " (" + technology.name() + ")"
                + (entry.isBeyondPapers() ? ", beyond the papers" : ""));
        fact("style", style(technology));
        fact("needs", technology.broker().orElse("no broker"));
        fact("a service contains", String.join("; ", technology.components()));
        fact("who knows whom", technology.knows());
        if (technology.queues().isEmpty()) {
            fact("queues, topics", "none");
        }
        technology.queues().forEach(this::fact);
        fact("encoding", technology.encoding());
        technology.settings().forEach((name, value) -> {
            if (!name.equals("serializer") && !technology.queues().containsKey(name)) {
                fact(name, value);
            }
        });
        fact(
                "installed",
                megabytes(entry.bytes()) + " MB in " + entry.libraries().size() + " files, without the JDK:");
        for (LibraryRow library : entry.libraries()) {
            out.printf(
                    Locale.ROOT,
                    "  %10.1f kB  %-42s %-18s %s%n",
                    library.bytes() / 1e3,
                    library.name(),
                    library.version().isEmpty() ? "-" : library.version(),
                    library.licence());
        }
        out.println();
    }

    /** The text goes on below itself. */
    private void fact(String name, String value) {
        StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "  %-" + NAME + "s ", name));
        int indent = NAME + 3;
        if (name.length() > NAME) {
            line.append(System.lineSeparator()).append(" ".repeat(indent));
        }
        int used = indent;
        for (String word : value.split(" ", -1)) {
            if (used > indent && used + word.length() + 1 > WIDTH) {
                line.append(System.lineSeparator()).append(" ".repeat(indent));
                used = indent;
            }
            line.append(used > indent ? " " : "").append(word);
            used += word.length() + (used > indent ? 1 : 0);
        }
        out.println(line);
    }

    private static Map<String, Object> fields(Inventory.Entry entry) {
        Technology technology = entry.technology();
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("name", technology.name());
        fields.put("title", technology.title());
        fields.put("beyondPapers", entry.isBeyondPapers());
        fields.put("style", style(technology));
        fields.put("broker", technology.broker().orElse(null));
        fields.put("components", technology.components());
        fields.put("knows", technology.knows());
        fields.put("queues", technology.queues());
        fields.put("encoding", technology.encoding());
        fields.put("settings", technology.settings());
        fields.put("installedBytes", entry.bytes());
        fields.put(
                "libraries",
                entry.libraries().stream()
                        .map(library -> Map.of(
                                "name", library.name(),
                                "version", library.version(),
                                "licence", library.licence(),
                                "bytes", library.bytes()))
                        .toList());
        return fields;
    }

    private static String style(Technology technology) {
        return technology.style().name().toLowerCase(Locale.ROOT);
    }

    private static String megabytes(long bytes) {
        return String.format(Locale.ROOT, "%.1f", bytes / 1e6);
    }

    private static String cut(String text, int most) {
        return text.length() <= most ? text : text.substring(0, most - 1).stripTrailing() + "…";
    }
}
