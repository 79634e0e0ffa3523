package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.examples.plain.GreeterClient;
import dev.rpcx.examples.plain.GreeterServer;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Runs the commands of the guide as a reader would run them. A comment below a command has a line that the command
 * prints. The script {@code run} says which class an example is; the tests call that class in this process.
 */
@Timeout(120)
class ExamplesTest {
    private static final String RUN = "rpcx/rpcx-examples/run ";

    /** Commands that other tests run: two programs at once, and the sample of Spring Boot. */
    private static final List<String> RUN_ELSEWHERE =
            List.of(RUN + "server", RUN + "client", "rpcx/rpcx-spring-boot-sample/run");

    @TempDir
    private Path folder;

    private interface Program {
        void run() throws Exception;
    }

    private static String said(Program main) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        try {
            main.run();
        } finally {
            System.setOut(before);
        }
        return said.toString(StandardCharsets.UTF_8).strip();
    }

    /** Runs a command and returns what it prints. */
    private String run(String command) throws Exception {
        if (!command.startsWith(RUN)) {
            return shell(command);
        }
        List<String> words = List.of(command.substring(RUN.length()).split(" "));
        Matcher main = Pattern.compile("^  " + words.get(0) + "\\) main=(\\S+) ;;$", Pattern.MULTILINE)
                .matcher(Files.readString(Path.of("run")));
        assertThat(main.find()).as(command).isTrue();
        String[] args = words.stream()
                .skip(1)
                .map(word -> word.replace("\"$PWD\"", folder.toString()))
                .toArray(String[]::new);
        java.lang.reflect.Method entry =
                Class.forName("dev.rpcx.examples." + main.group(1)).getMethod("main", String[].class);
        return said(() -> entry.invoke(null, (Object) args));
    }

    private String shell(String command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder("bash", "-ec", command)
                .directory(folder.toFile())
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(command).isZero();
        return said.strip();
    }

    @ParameterizedTest
    @FieldSource("dev.rpcx.examples.GuidePages#NAMES")
    void theCommandsOfAPagePrintWhatThePageSays(String name) throws Exception {
        for (String block : GuidePages.blocks(GuidePages.text(name), "sh")) {
            String command = "";
            List<String> printed = new ArrayList<>();
            for (String line : block.replace("\\\n", "").lines().toList()) {
                if (line.startsWith("# ")) {
                    printed.add(line.substring(2));
                } else {
                    compare(command, printed);
                    command = line;
                    printed.clear();
                }
            }
            compare(command, printed);
        }
    }

    private void compare(String command, List<String> printed) throws Exception {
        if (!command.isEmpty() && RUN_ELSEWHERE.stream().noneMatch(command::startsWith)) {
            assertThat(run(command).lines()).as(command).containsExactlyElementsOf(printed);
        }
    }

    @Test
    void aServerAndAClientAreTwoPrograms() throws Exception {
        Process server = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        GreeterServer.class.getName(),
                        "0")
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        try (BufferedReader out =
                new BufferedReader(new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8))) {
            String line = out.readLine();
            assertThat(line).startsWith("serving on ");
            String port = line.substring("serving on ".length());
            assertThat(said(() -> GreeterClient.main(new String[] {"127.0.0.1", port, "Ada"})))
                    .isEqualTo("Hello Ada");
        } finally {
            server.destroy();
        }
    }
}
