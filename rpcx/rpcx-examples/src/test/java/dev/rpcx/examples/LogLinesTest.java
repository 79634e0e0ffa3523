package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.ExpressionTree;
import com.sun.source.tree.LiteralTree;
import com.sun.source.tree.MemberSelectTree;
import com.sun.source.tree.MethodInvocationTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreeScanner;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/**
 * Tests that the page on operating has every message that RPCX logs. The messages are the texts in calls of a logger in
 * the sources of all modules that a service may have.
 */
class LogLinesTest {
    private static final List<String> MODULES = List.of(
            "rpcx",
            "rpcx-grpc",
            "rpcx-micrometer",
            "rpcx-opentelemetry",
            "rpcx-zookeeper",
            "rpcx-kubernetes",
            "rpcx-consul",
            "rpcx-spring-boot-starter");

    /** Names of the methods that log a text, in classes that have a logger. */
    private static final Pattern LOGGING = Pattern.compile("log|warn");

    /** A class that has one of these words logs. */
    private static final Pattern LOGGER = Pattern.compile("System\\.getLogger\\(|\\bRateLimitedLog\\b");

    private static final Pattern LOGGER_NAME = Pattern.compile("\"(dev\\.rpcx\\.\\w+)\"");
    private static final Pattern LOGGER_OF_CLASS =
            Pattern.compile("System\\.getLogger\\((\\w+)\\.class\\.getName\\(\\)\\)");

    /** A part of a message that is filled in, as {@code MessageFormat} writes it. */
    private static final Pattern FILLED_IN = Pattern.compile("\\{\\d}");

    private final List<String> texts = new ArrayList<>();
    private final TreeSet<String> loggers = new TreeSet<>();

    private void read() throws IOException {
        List<Path> files = new ArrayList<>();
        for (String module : MODULES) {
            try (Stream<Path> walk = Files.walk(Path.of("..", module, "src/main/java"))) {
                for (Path file :
                        walk.filter(each -> each.toString().endsWith(".java")).toList()) {
                    String source = Files.readString(file);
                    if (LOGGER.matcher(source).find()) {
                        files.add(file);
                        addLoggers(source);
                    }
                }
            }
        }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null)) {
            JavacTask task = (JavacTask) compiler.getTask(
                    null, manager, null, List.of("-proc:none"), null, manager.getJavaFileObjectsFromPaths(files));
            for (CompilationUnitTree unit : task.parse()) {
                new Calls().scan(unit, null);
            }
        }
    }

    private void addLoggers(String source) {
        LOGGER_NAME.matcher(source).results().forEach(name -> loggers.add(name.group(1)));
        Matcher pack = Pattern.compile("^package ([\\w.]+);", Pattern.MULTILINE).matcher(source);
        assertThat(pack.find()).isTrue();
        LOGGER_OF_CLASS.matcher(source).results().forEach(name -> loggers.add(pack.group(1) + "." + name.group(1)));
    }

    /** Collects the texts in the arguments of calls that log. */
    private final class Calls extends TreeScanner<Void, Void> {
        @Override
        public Void visitMethodInvocation(MethodInvocationTree call, Void none) {
            Tree method = call.getMethodSelect();
            String name = method instanceof MemberSelectTree selected
                    ? selected.getIdentifier().toString()
                    : method.toString();
            if (LOGGING.matcher(name).matches()) {
                for (ExpressionTree argument : call.getArguments()) {
                    new Texts().scan(argument, null);
                }
            }
            return super.visitMethodInvocation(call, none);
        }
    }

    /** Collects texts of two words and more. Shorter ones, such as a comma, stand between parts that are filled in. */
    private final class Texts extends TreeScanner<Void, Void> {
        @Override
        public Void visitLiteral(LiteralTree literal, Void none) {
            if (literal.getValue() instanceof String text) {
                for (String part : FILLED_IN.split(text)) {
                    if (part.strip().contains(" ")) {
                        texts.add(part.strip());
                    }
                }
            }
            return null;
        }
    }

    @Test
    void thePageHasEveryMessageAndEveryLogger() throws IOException {
        read();
        String page = GuidePages.onOneLine(GuidePages.text("operating"));
        assertThat(texts).hasSizeGreaterThan(25);
        assertThat(texts).allSatisfy(text -> assertThat(page).contains(GuidePages.onOneLine(text)));
        assertThat(loggers).hasSizeGreaterThan(8);
        assertThat(loggers).allSatisfy(logger -> assertThat(page).contains("`" + logger + "`"));
    }
}
