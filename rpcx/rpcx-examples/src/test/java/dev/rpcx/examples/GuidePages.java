package dev.rpcx.examples;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/** Reads the pages of the guide. */
final class GuidePages {
    static final Path FOLDER = Path.of("guide");

    /** Names of the pages, in the order of a reader's first week. */
    static final List<String> NAMES = List.of(
            "hello",
            "types",
            "schema",
            "errors",
            "timeouts",
            "interceptors",
            "streams",
            "instances",
            "tls",
            "spring",
            "kotlin",
            "testing",
            "metrics",
            "operating",
            "from-grpc",
            "from-feign",
            "from-dubbo");

    private GuidePages() {}

    static Path file(String name) {
        return FOLDER.resolve(name + ".md");
    }

    static String text(String name) throws IOException {
        return Files.readString(file(name));
    }

    /** Returns the code blocks of a text that have this language, as they stand there. */
    static List<String> blocks(String text, String language) {
        return Pattern.compile("^```" + language + "\n(.*?)^```$", Pattern.DOTALL | Pattern.MULTILINE)
                .matcher(text)
                .results()
                .map(block -> block.group(1))
                .toList();
    }

    /** Returns a text without line breaks and indents, so that a page may break its lines elsewhere. */
    static String onOneLine(String text) {
        return text.replaceAll("\\s+", " ").replace("> <", "><").strip();
    }
}
