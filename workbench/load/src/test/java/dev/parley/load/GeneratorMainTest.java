package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.parley.protocol.Protocol;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class GeneratorMainTest {
    private static Process start() throws IOException {
        return new ProcessBuilder(List.of(
                        ProcessHandle.current().info().command().orElseThrow(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        GeneratorMain.class.getName()))
                .start();
    }

    @Test
    void commandsAreAnsweredInOrderAndWhatIsNoneIsAFailure() throws Exception {
        Process process = start();
        try (PrintWriter commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
                BufferedReader events = process.inputReader(StandardCharsets.UTF_8)) {
            commands.println(Protocol.greeting());
            commands.println("nonsense");
            commands.println(Protocol.line(new Command.Release("127.0.0.1:1")));
            assertThat(events.readLine()).isEqualTo(Protocol.greeting());
            assertThat(Protocol.read(events.readLine(), Event.class))
                    .isInstanceOfSatisfying(
                            Event.Failed.class,
                            failed -> assertThat(failed.message()).contains("no Command: nonsense"));
            assertThat(Protocol.read(events.readLine(), Event.class)).isEqualTo(new Event.Done());
        }
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
    }

    @Test
    void anotherVersionOfTheProtocolIsRefusedInOneLineThatNamesBoth() throws Exception {
        int other = Protocol.VERSION + 1;
        Process process = start();
        try (PrintWriter commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true)) {
            commands.println(Protocol.greeting().replace(":" + Protocol.VERSION, ":" + other));
            assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8).lines())
                    .singleElement()
                    .asString()
                    .startsWith("generator: protocol: version " + other + " from the lab")
                    .contains("version " + Protocol.VERSION + ",");
        }
        assertThat(process.waitFor()).isEqualTo(1);
    }

    /** Bytes are counted over the second command: a login among them would be taken for a part of each request. */
    @Test
    void usersLogInOnceForAllCallsWhoseBytesAreCounted() throws Exception {
        List<String> asked = new CopyOnWriteArrayList<>();
        Process process = start();
        try (ServerSocket service = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                PrintWriter commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
                BufferedReader events = process.inputReader(StandardCharsets.UTF_8)) {
            Thread.ofPlatform().daemon().start(() -> serve(service, asked));
            String location = "127.0.0.1:" + service.getLocalPort();
            commands.println(Protocol.greeting());
            assertThat(events.readLine()).isEqualTo(Protocol.greeting());
            commands.println(Protocol.line(new Command.Use("named", "line:1", "logins", 1)));
            assertThat(Protocol.read(events.readLine(), Event.class)).isEqualTo(new Event.Done());
            Command count = new Command.Count(location, "text:10", 4, 4, 1_000);
            Event fourCalls = new Event.Counted(4, 1, 1);

            commands.println(Protocol.line(count));
            assertThat(Protocol.read(events.readLine(), Event.class)).isEqualTo(fourCalls);
            assertThat(asked).containsExactly("login", "ask", "ask", "ask", "ask");
            asked.clear();
            commands.println(Protocol.line(count));
            assertThat(Protocol.read(events.readLine(), Event.class)).isEqualTo(fourCalls);
            assertThat(asked).containsExactly("ask", "ask", "ask", "ask");

            asked.clear();
            commands.println(Protocol.line(new Command.Release(location)));
            assertThat(Protocol.read(events.readLine(), Event.class)).isEqualTo(new Event.Done());
            commands.println(Protocol.line(count));
            assertThat(Protocol.read(events.readLine(), Event.class)).isEqualTo(fourCalls);
            assertThat(asked).as("over another connection").startsWith("login").hasSize(5);
        }
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
    }

    /** Notes what each connection asks, and closes it. */
    private static void serve(ServerSocket service, List<String> asked) {
        while (!service.isClosed()) {
            try (Socket client = service.accept();
                    BufferedReader in = new BufferedReader(
                            new InputStreamReader(client.getInputStream(), StandardCharsets.UTF_8))) {
                asked.add(in.readLine());
            } catch (IOException closed) {
                return;
            }
        }
    }
}
