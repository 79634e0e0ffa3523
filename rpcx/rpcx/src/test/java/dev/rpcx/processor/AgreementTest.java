package dev.rpcx.processor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests that the annotation processor, the start of a client and the start of a server accept the same forms, and
 * refuse the others with the same words. Each form is compiled twice, each time in a package of its own: once with the
 * processor, and once without it, to be loaded and started.
 */
class AgreementTest {
    private static final Client CLIENT = Client.builder().inProcess().build();

    private static final List<Form> FORMS = Forms.all().toList();

    @TempDir
    private static Path folder;

    /** The errors of the processor by the name of their file. */
    private static final Map<String, List<String>> REFUSED = new HashMap<>();

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String path, String text) {
            super(URI.create("memory:///" + path + ".java"), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    @BeforeAll
    static void compile() {
        List<Source> clients = new ArrayList<>();
        List<Source> services = new ArrayList<>();
        for (int i = 0; i < FORMS.size(); i++) {
            String client = FORMS.get(i).client();
            String server = FORMS.get(i).server();
            if (client != null) {
                clients.add(new Source(folder(i) + "/Calls", Form.IMPORTS.formatted(folder(i)) + client));
            }
            if (server != null) {
                services.add(new Source(folder(i) + "/Service", Form.IMPORTS.formatted(folder(i)) + server));
            }
        }
        for (List<Source> sources : List.of(clients, services)) {
            assertThat(compile(sources, "-proc:none")).isEmpty();
            REFUSED.putAll(compile(
                    sources,
                    "-proc:only",
                    "-processorpath",
                    Path.of("target", "classes").toString()));
        }
    }

    private static String folder(int form) {
        return "form" + form;
    }

    private static Map<String, List<String>> compile(List<Source> sources, String... processing) {
        DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
        List<String> options = new ArrayList<>(List.of(
                "-parameters",
                "-Xmaxerrs",
                "100000",
                "-d",
                folder.toString(),
                "-classpath",
                System.getProperty("java.class.path")));
        options.addAll(List.of(processing));
        ToolProvider.getSystemJavaCompiler()
                .getTask(null, null, said, options, null, sources)
                .call();
        Map<String, List<String>> errors = new HashMap<>();
        for (Diagnostic<? extends JavaFileObject> each : said.getDiagnostics()) {
            if (each.getKind() == Diagnostic.Kind.ERROR) {
                String file = each.getSource() == null ? "" : each.getSource().getName();
                errors.computeIfAbsent(file, none -> new ArrayList<>()).add(each.getMessage(null));
            }
        }
        return errors;
    }

    @AfterAll
    static void close() {
        CLIENT.close();
    }

    static Stream<Arguments> forms() {
        return IntStream.range(0, FORMS.size()).mapToObj(i -> Arguments.of(FORMS.get(i), folder(i)));
    }

    @ParameterizedTest(name = "{1}: {0}")
    @MethodSource("forms")
    void processorClientAndServerAgree(Form form, String name) throws IOException, ClassNotFoundException {
        List<String> found = new ArrayList<>();
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            if (form.client() != null) {
                hold(form, "the compiler of a client", errors(name + "/Calls"), found);
                Class<?> type = loader.loadClass(name + ".Calls");
                hold(form, "a client", refusal(() -> CLIENT.create(type, "here", 9)), found);
            }
            if (form.server() != null) {
                hold(form, "the compiler of a service", errors(name + "/Service"), found);
                Class<?> type = loader.loadClass(name + ".Service");
                hold(form, "a server", refusal(() -> start(type)), found);
            }
        }
        assertThat(found).isEmpty();
    }

    /** Code in the package of {@code q.Sent} cannot name {@code o.Hidden}, so no code is generated. */
    @Test
    void aPropertyWhoseClassIsHiddenInAnotherPackageArrives() throws Exception {
        List<Source> sources = List.of(new Source("o/Base", """
                        package o;
                        public class Base {
                            private Hidden one = new Hidden(1);
                            public Hidden getOne() { return one; }
                            public void setOne(Hidden v) { one = v; }
                            public static void change(Base base) { base.one = new Hidden(7); }
                            @Override public String toString() { return one.toString(); }
                        }
                        record Hidden(int x) {}
                        """), new Source("q/Sent", """
                        package q;
                        import dev.rpcx.*;
                        public class Sent extends o.Base {
                            @RPCXClient(remoteServerName = "x") public interface Calls { Sent a(Sent x); }
                            @RPCXServer("x") public static class Service { @Method Sent a(Sent x) { return x; } }
                        }
                        """));
        assertThat(compile(
                        sources,
                        "-proc:full",
                        "-processorpath",
                        Path.of("target", "classes").toString()))
                .isEmpty();
        try (URLClassLoader loader =
                        new URLClassLoader(new URL[] {folder.toUri().toURL()});
                Server server = Server.builder(RegistryServer.registry(loader.loadClass("q.Sent$Service")))
                        .inProcess()
                        .port(0)
                        .build()) {
            server.start();
            Class<?> type = loader.loadClass("q.Sent");
            Object sent = type.getConstructor().newInstance();
            loader.loadClass("o.Base")
                    .getMethod("change", loader.loadClass("o.Base"))
                    .invoke(null, sent);
            Class<?> calls = loader.loadClass("q.Sent$Calls");
            Object proxy = CLIENT.create(calls, "here", server.port());
            assertThat(calls.getMethod("a", type).invoke(proxy, sent)).hasToString("Hidden[x=7]");
        }
    }

    private static List<String> errors(String file) {
        return REFUSED.getOrDefault("/" + file + ".java", List.of());
    }

    /** @param said what was refused; empty if all was accepted */
    private static void hold(Form form, String who, List<String> said, List<String> found) {
        boolean isExpected = form.isRefused()
                ? said.stream().anyMatch(text -> form.words().stream().allMatch(text::contains))
                : said.isEmpty();
        if (!isExpected) {
            found.add(who + (said.isEmpty() ? " accepts it" : " says " + said));
        }
    }

    private static void start(Class<?> type) {
        try (Server server = Server.builder(RegistryServer.registry(type))
                .inProcess()
                .port(0)
                .build()) {
            server.start();
        }
    }

    private static List<String> refusal(Runnable start) {
        try {
            start.run();
            return List.of();
        } catch (IllegalArgumentException refused) {
            return List.of(Objects.requireNonNull(refused.getMessage()));
        }
    }
}
