package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/**
 * Tests that the Java code in the documents compiles. A fragment with imports is compiled as a whole file. Any other
 * fragment is compiled within a method of a class that has what the text around the fragment mentions. The guide of the
 * examples has a test of its own, which compares it with programs that run.
 */
class DocumentedCodeTest {
    private static final Path ROOT = Path.of("..", "..");

    private static final Pattern FENCE = Pattern.compile("^```java\n(.*?)^```", Pattern.DOTALL | Pattern.MULTILINE);

    /** Declares what the documents use without a declaration. What further fragments need is added here. */
    private static final String BEFORE = """
            import dev.rpcx.*;
            import java.nio.file.Path;
            import java.time.Duration;
            import java.util.*;
            import java.util.concurrent.*;

            class Documented {
                RegistryServer registry;
                Map<String, byte[]> secrets;
                byte[] secretOfAlice;
                Path chain;
                Path key;
                Path authority;

                boolean allowed(String caller, String method) {
                    return false;
                }

                void documented() throws Exception {
            """;

    private static final String AFTER = "\n;}}";

    private static List<Path> documents() throws IOException {
        List<Path> found = new ArrayList<>();
        found.add(ROOT.resolve("README.md"));
        for (String folder : List.of("docs", "rpcx")) {
            try (Stream<Path> files = Files.walk(ROOT.resolve(folder))) {
                files.filter(file -> file.toString().endsWith(".md"))
                        .filter(file -> !file.toString().contains("guide"))
                        .forEach(found::add);
            }
        }
        return found;
    }

    @Test
    void theJavaOfTheDocumentsCompiles() throws IOException {
        List<String> errors = new ArrayList<>();
        int compiled = 0;
        for (Path document : documents()) {
            compiled += compile(ROOT.relativize(document).toString(), Files.readString(document), errors);
        }
        assertThat(errors).isEmpty();
        assertThat(compiled).isGreaterThanOrEqualTo(4);
    }

    @Test
    void rotIsAnErrorThatNamesFileAndLine() throws IOException {
        List<String> errors = new ArrayList<>();
        String page = """
                # Page

                ```java
                Server.builder(registry)
                        .noSuchSetting(true)
                ```

                ```java
                import dev.rpcx.*;

                class Whole {
                    Missing missing;
                }
                ```
                """;
        assertThat(compile("page.md", page, errors)).isEqualTo(2);
        assertThat(errors).hasSize(2);
        assertThat(errors.get(0)).startsWith("page.md:5: ").contains("noSuchSetting");
        assertThat(errors.get(1)).startsWith("page.md:12: ").contains("Missing");
    }

    /** @return how many fragments the page has */
    private static int compile(String name, String page, List<String> errors) throws IOException {
        Matcher fragments = FENCE.matcher(page);
        int found = 0;
        while (fragments.find()) {
            long above = page.substring(0, fragments.start(1)).lines().count();
            compile(name, above, fragments.group(1), errors);
            found++;
        }
        return found;
    }

    private static void compile(String name, long above, String fragment, List<String> errors) throws IOException {
        boolean isWhole = fragment.startsWith("import ") || fragment.startsWith("package ");
        long added = isWhole ? 0 : BEFORE.lines().count();
        String source = isWhole ? fragment : BEFORE + fragment + AFTER;
        JavaFileObject file =
                new SimpleJavaFileObject(URI.create("string:///Documented.java"), JavaFileObject.Kind.SOURCE) {
                    @Override
                    public CharSequence getCharContent(boolean ignored) {
                        return source;
                    }
                };
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(said, Locale.ROOT, null)) {
            Path classes = Files.createTempDirectory("documented");
            try {
                List<String> options = List.of(
                        "-proc:none", "-d", classes.toString(), "-classpath", System.getProperty("java.class.path"));
                compiler.getTask(null, files, said, options, null, List.of(file))
                        .call();
            } finally {
                delete(classes);
            }
        }
        for (Diagnostic<? extends JavaFileObject> each : said.getDiagnostics()) {
            if (each.getKind() == Diagnostic.Kind.ERROR) {
                long line = above + each.getLineNumber() - added;
                errors.add(name + ":" + line + ": " + each.getMessage(Locale.ROOT));
            }
        }
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
